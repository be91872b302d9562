import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.FileOutputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Kafka's own clients in the transactional workload: what worker.py does with librdkafka, a thread for each client.
 * Arguments: bootstrap, history file, name, seed, pace in ms, then the clients: "producer:ID" or "transformer:ID:GROUP:PROTOCOL".
 */
public final class JavaWorker {
    private static final String INPUT = "in";
    private static final String OUTPUT = "out";
    private static final int PARTITIONS = 3;
    private static final ObjectMapper JSON = new ObjectMapper();
    private static volatile boolean stopping;
    private static OutputStream history;
    private static String bootstrap;
    private static int paceMs;

    private static Map<String, Object> fields(Object... pairs) {
        Map<String, Object> made = new LinkedHashMap<>();
        for (int i = 0; i < pairs.length; i += 2) made.put((String) pairs[i], pairs[i + 1]);
        return made;
    }

    /** One event. Written and handed to the operating system before this returns; the clock is that of Python's monotonic_ns. */
    private static void note(String process, String type, String op, Object... pairs) {
        synchronized (JSON) {
            Map<String, Object> event = fields("time", System.nanoTime(), "process", process, "type", type, "op", op);
            event.putAll(fields(pairs));
            try {
                history.write((JSON.writeValueAsString(event) + "\n").getBytes(StandardCharsets.UTF_8));
            } catch (java.io.IOException error) {
                throw new java.io.UncheckedIOException(error);
            }
        }
    }

    /** This client cannot go on; a new one can. */
    private static final class Restart extends RuntimeException {
        Restart(Throwable cause) {
            super(cause);
        }
    }

    /** One life of one client. */
    private abstract static class Client implements AutoCloseable {
        final String name;
        final Random random;
        final KafkaProducer<String, String> producer;
        private int count;

        Client(String name, String transactionalId, Random random) {
            this.name = name;
            this.random = random;
            Map<String, Object> settings = common();
            settings.put("transactional.id", transactionalId);
            settings.put("transaction.timeout.ms", 10_000);
            settings.put("max.block.ms", 5_000);
            settings.put("delivery.timeout.ms", 10_000);
            settings.put("linger.ms", 1);
            producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
        }

        static Map<String, Object> common() {
            Map<String, Object> settings = new HashMap<>();
            settings.put("bootstrap.servers", bootstrap);
            settings.put("reconnect.backoff.ms", 20);
            settings.put("reconnect.backoff.max.ms", 200);
            settings.put("retry.backoff.ms", 20);
            settings.put("request.timeout.ms", 4_000);
            settings.put("metadata.max.age.ms", 2_000);
            return settings;
        }

        void init() {
            while (!stopping) {
                try {
                    producer.initTransactions();
                    return;
                } catch (TimeoutException again) {
                    continue;
                }
            }
        }

        String begin() {
            String txn = name + "/" + ++count;
            producer.beginTransaction();
            note(name, "ok", "begin", "txn", txn);
            return txn;
        }

        Future<?> send(String topic, String value, String txn, String source) {
            int partition = random.nextInt(PARTITIONS);
            String where = topic + "-" + partition;
            if (source == null) note(name, "invoke", "send", "partition", where, "value", value, "txn", txn);
            else note(name, "invoke", "send", "partition", where, "value", value, "txn", txn, "source", source);
            return producer.send(new ProducerRecord<>(topic, partition, null, value), (metadata, error) -> {
                if (error == null) note(name, "ok", "send", "value", value, "offset", metadata.offset());
                else note(name, "info", "send", "value", value, "error", error.toString());
            });
        }

        /** Whether it was committed. */
        boolean end(String txn, boolean commit) {
            if (commit) {
                producer.flush();
                ask(txn, "commit", producer::commitTransaction);
            } else {
                ask(txn, "abort", producer::abortTransaction);
            }
            return commit;
        }

        /** Until there is an answer; a timeout may and must be asked again. */
        void ask(String txn, String op, Runnable call) {
            while (true) {
                note(name, "invoke", op, "txn", txn);
                try {
                    call.run();
                    note(name, "ok", op, "txn", txn);
                    return;
                } catch (TimeoutException again) {
                    note(name, "info", op, "txn", txn, "error", again.toString());
                    if (stopping) throw new Restart(again);
                } catch (RuntimeException error) {
                    note(name, "info", op, "txn", txn, "error", error.toString());
                    throw error;
                }
            }
        }

        abstract void run();

        @Override
        public void close() {
            producer.close(Duration.ZERO);
        }
    }

    private static final class Producing extends Client {
        Producing(String name, String transactionalId, Random random) {
            super(name, transactionalId, random);
        }

        @Override
        void run() {
            init();
            while (!stopping) {
                String txn = begin();
                int records = 1 + random.nextInt(6);
                for (int number = 0; number < records; number++) send(INPUT, txn + "/" + number, txn, null);
                end(txn, random.nextBoolean());
                pause(random.nextInt(paceMs + 1));
            }
        }
    }

    private static final class Transforming extends Client implements ConsumerRebalanceListener {
        private final String group;
        private final KafkaConsumer<String, String> consumer;

        Transforming(String name, String transactionalId, String group, String protocol, Random random) {
            super(name, transactionalId, random);
            this.group = group;
            Map<String, Object> settings = common();
            settings.put("group.id", group);
            settings.put("group.protocol", protocol);
            settings.put("isolation.level", "read_committed");
            settings.put("enable.auto.commit", false);
            settings.put("auto.offset.reset", "earliest");
            settings.put("max.poll.records", 12);
            settings.put("default.api.timeout.ms", 10_000);
            settings.put("fetch.max.wait.ms", 50);
            if (protocol.equals("classic")) {
                settings.put("session.timeout.ms", 6_000);
                settings.put("heartbeat.interval.ms", 500);
            }
            consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
        }

        @Override
        void run() {
            init();
            consumer.subscribe(List.of(INPUT), this);
            while (!stopping) {
                List<ConsumerRecord<String, String>> records = new ArrayList<>();
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) records.add(record);
                if (!records.isEmpty() && !transform(records)) rewind(consumer.assignment());
            }
        }

        private boolean transform(List<ConsumerRecord<String, String>> records) {
            List<List<Object>> told = new ArrayList<>();
            Map<TopicPartition, OffsetAndMetadata> ends = new HashMap<>();
            Map<String, Long> offsets = new HashMap<>();
            for (ConsumerRecord<String, String> record : records) {
                String where = record.topic() + "-" + record.partition();
                told.add(List.of(where, record.offset(), record.value()));
                ends.put(new TopicPartition(record.topic(), record.partition()), new OffsetAndMetadata(record.offset() + 1));
                offsets.put(where, record.offset() + 1);
            }
            note(name, "ok", "poll", "records", told);
            String txn = begin();
            int number = 0;
            for (ConsumerRecord<String, String> record : records) send(OUTPUT, txn + "/" + number++, txn, record.value());
            note(name, "invoke", "offsets", "group", group, "offsets", offsets, "txn", txn);
            try {
                producer.sendOffsetsToTransaction(ends, consumer.groupMetadata());
            } catch (RuntimeException error) {
                note(name, "info", "offsets", "group", group, "txn", txn, "error", error.toString());
                throw error;
            }
            note(name, "ok", "offsets", "group", group, "txn", txn);
            return end(txn, random.nextInt(4) != 0);
        }

        /** Back to where the group stands. */
        private void rewind(Collection<TopicPartition> partitions) {
            if (partitions.isEmpty()) return;
            note(name, "invoke", "fetch");
            Map<TopicPartition, OffsetAndMetadata> found = consumer.committed(new HashSet<>(partitions));
            Map<String, Long> told = new HashMap<>();
            Map<String, Long> positions = new HashMap<>();
            for (TopicPartition each : partitions) {
                OffsetAndMetadata at = found.get(each);
                told.put(each.toString(), at == null ? -1L : at.offset());
                positions.put(each.toString(), at == null ? 0L : at.offset());
            }
            note(name, "ok", "fetch", "group", group, "offsets", told);
            note(name, "ok", "position", "positions", positions);
            for (TopicPartition each : partitions) consumer.seek(each, positions.get(each.toString()));
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            rewind(partitions);
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            List<String> names = new ArrayList<>();
            for (TopicPartition each : partitions) names.add(each.toString());
            note(name, "ok", "revoke", "partitions", names);
        }

        @Override
        public void close() {
            super.close();
            try {
                consumer.close(Duration.ofSeconds(2));
            } catch (KafkaException error) {
                System.out.println(name + " closed badly: " + error);
            }
        }
    }

    private static void pause(long milliseconds) {
        try {
            Thread.sleep(milliseconds);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    private static void live(String worker, String role, long seed) {
        String[] parts = role.split(":");
        Random random = new Random(seed + role.hashCode());
        for (int life = 1; !stopping; life++) {
            String name = worker + "." + parts[1] + "." + life;
            try (Client client = parts[0].equals("producer")
                    ? new Producing(name, parts[1], random)
                    : new Transforming(name, parts[1], parts[2], parts[3], random)) {
                client.run();
            } catch (KafkaException | Restart | IllegalStateException error) {
                System.out.println(name + " ends: " + error);
                pause(50);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        bootstrap = args[0];
        history = new FileOutputStream(args[1], true);
        paceMs = Integer.parseInt(args[4]);
        List<Thread> threads = new ArrayList<>();
        for (int i = 5; i < args.length; i++) {
            String role = args[i];
            Thread thread = new Thread(() -> live(args[2], role, Long.parseLong(args[3])), role);
            thread.start();
            threads.add(thread);
        }
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            stopping = true;
            for (Thread thread : threads) {
                try {
                    thread.join(15_000);
                } catch (InterruptedException error) {
                    return;
                }
            }
        }));
    }
}
