import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.Arrays;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import org.HdrHistogram.Histogram;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * The load generators that Apache Kafka's ProducerPerformance does not cover; the result is one line of JSON.
 *
 * <p>consume BOOTSTRAP TOPIC RECORDS: a consumer with default settings reads all partitions by assignment.
 * <br>requests HOST PORT CONNECTIONS SECONDS WARMUP FRAME ERROR_AT: sends the same prepared request (base64, with its length)
 * on each connection, the next one when the answer is there; an answer with a non-zero int16 at ERROR_AT is an error.
 * <br>latency BOOTSTRAP TOPIC RATE SECONDS WARMUP [cold=TOPIC] [churn=TOPIC]: from the moment a record was due to be sent until
 * a consumer has it, at a steady rate; meanwhile another consumer reads a topic from its beginning over and over, and another
 * producer rewrites a thousand keys.
 * <br>spread BOOTSTRAP TOPIC PARTITIONS RECORDS SIZE: a producer with default settings, partitions in turn.
 */
public final class Bench {
    public static void main(String[] args) throws Exception {
        String[] rest = Arrays.copyOfRange(args, 1, args.length);
        Map<String, Object> result = switch (args[0]) {
            case "consume" -> consume(rest);
            case "requests" -> requests(rest);
            case "latency" -> latency(rest);
            case "spread" -> spread(rest);
            case "transactions" -> transactions(rest);
            default -> throw new IllegalArgumentException(args[0]);
        };
        System.out.println(new ObjectMapper().writeValueAsString(result));
        System.out.flush();
        System.exit(0); // threads that generate side load are in the middle of something
    }

    private static KafkaConsumer<byte[], byte[]> consumer(String bootstrap) {
        Properties config = new Properties();
        config.put("bootstrap.servers", bootstrap);
        config.put("enable.auto.commit", "false");
        return new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private static KafkaProducer<byte[], byte[]> producer(String bootstrap, String... more) {
        Properties config = new Properties();
        config.put("bootstrap.servers", bootstrap);
        for (int i = 0; i < more.length; i += 2) {
            config.put(more[i], more[i + 1]);
        }
        return new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private static List<TopicPartition> assignAll(KafkaConsumer<byte[], byte[]> consumer, String topic) {
        List<TopicPartition> all = consumer.partitionsFor(topic).stream()
            .map(p -> new TopicPartition(topic, p.partition())).collect(Collectors.toList());
        consumer.assign(all);
        return all;
    }

    private static Map<String, Object> consume(String[] args) {
        long wanted = Long.parseLong(args[2]);
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(args[0])) {
            List<TopicPartition> all = assignAll(consumer, args[1]);
            consumer.seekToBeginning(all);
            all.forEach(consumer::position);
            long records = 0;
            long bytes = 0;
            long start = System.nanoTime();
            while (records < wanted) {
                ConsumerRecords<byte[], byte[]> polled = consumer.poll(Duration.ofSeconds(10));
                if (polled.isEmpty()) {
                    throw new IllegalStateException("nothing more after " + records + " of " + wanted + " records");
                }
                for (ConsumerRecord<byte[], byte[]> one : polled) {
                    records++;
                    bytes += one.serializedValueSize();
                }
            }
            return throughput(records, bytes, System.nanoTime() - start);
        }
    }

    private static Map<String, Object> throughput(long records, long bytes, long nanos) {
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("records", records);
        result.put("seconds", nanos / 1e9);
        result.put("records_per_s", records * 1e9 / nanos);
        result.put("mb_per_s", bytes / 1048576.0 * 1e9 / nanos);
        return result;
    }

    private static Map<String, Object> spread(String[] args) {
        int partitions = Integer.parseInt(args[2]);
        long records = Long.parseLong(args[3]);
        byte[] value = new byte[Integer.parseInt(args[4])];
        new Random(1).nextBytes(value);
        long[] failed = new long[1];
        try (KafkaProducer<byte[], byte[]> producer = producer(args[0])) {
            producer.partitionsFor(args[1]);
            long start = System.nanoTime();
            for (long i = 0; i < records; i++) {
                producer.send(new ProducerRecord<>(args[1], (int) (i % partitions), null, value), (done, error) -> failed[0] += error == null ? 0 : 1);
            }
            producer.flush();
            Map<String, Object> result = throughput(records, records * value.length, System.nanoTime() - start);
            result.put("failed", failed[0]);
            return result;
        }
    }

    /** A connection with one request on its way. */
    private static final class Connection {
        final SocketChannel channel;
        final ByteBuffer request;
        final ByteBuffer answer = ByteBuffer.allocateDirect(4096);
        long sent;

        Connection(String host, int port, byte[] frame, Selector selector) throws IOException {
            channel = SocketChannel.open(new InetSocketAddress(host, port));
            channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
            channel.configureBlocking(false);
            channel.register(selector, SelectionKey.OP_READ, this);
            request = ByteBuffer.allocateDirect(frame.length).put(frame).flip();
        }

        void send() throws IOException {
            sent = System.nanoTime();
            request.rewind();
            while (request.hasRemaining()) {
                channel.write(request);
            }
        }

        /** True when a whole answer is there, which is then checked and forgotten. */
        boolean receive(int errorAt) throws IOException {
            if (channel.read(answer) < 0) {
                throw new IOException("the broker closed a connection");
            }
            if (answer.position() < 4 || answer.position() < 4 + answer.getInt(0)) {
                return false;
            }
            if (answer.getShort(errorAt) != 0) {
                throw new IOException("error code " + answer.getShort(errorAt));
            }
            answer.clear();
            return true;
        }
    }

    private static Map<String, Object> requests(String[] args) throws IOException {
        long seconds = Long.parseLong(args[3]);
        long warmup = Long.parseLong(args[4]);
        byte[] frame = Base64.getDecoder().decode(args[5]);
        int errorAt = Integer.parseInt(args[6]);
        Selector selector = Selector.open();
        Connection[] connections = new Connection[Integer.parseInt(args[2])];
        for (int i = 0; i < connections.length; i++) {
            connections[i] = new Connection(args[0], Integer.parseInt(args[1]), frame, selector);
        }
        for (Connection connection : connections) {
            connection.send();
        }
        Histogram latencies = new Histogram(10_000_000_000L, 3);
        long begin = System.nanoTime() + warmup * 1_000_000_000L;
        long end = begin + seconds * 1_000_000_000L;
        long cpu = 0;
        long now = 0;
        boolean measuring = false;
        while (now < end) {
            selector.select(key -> {
                Connection connection = (Connection) key.attachment();
                try {
                    if (connection.receive(errorAt)) {
                        long at = System.nanoTime();
                        if (connection.sent >= begin) {
                            latencies.recordValue(Math.min(at - connection.sent, 10_000_000_000L));
                        }
                        connection.send();
                    }
                } catch (IOException e) {
                    throw new java.io.UncheckedIOException(e);
                }
            }, 1000);
            now = System.nanoTime();
            if (!measuring && now >= begin) {
                measuring = true;
                cpu = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
            }
        }
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("requests", latencies.getTotalCount());
        result.put("seconds", (now - begin) / 1e9);
        result.put("per_s", latencies.getTotalCount() * 1e9 / (now - begin));
        result.put("generator_busy", (ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() - cpu) / (double) (now - begin));
        percentiles(latencies, result);
        return result;
    }

    static void percentiles(Histogram nanos, Map<String, Object> result) {
        result.put("p50_ms", nanos.getValueAtPercentile(50) / 1e6);
        result.put("p99_ms", nanos.getValueAtPercentile(99) / 1e6);
        result.put("p999_ms", nanos.getValueAtPercentile(99.9) / 1e6);
        result.put("max_ms", nanos.getMaxValue() / 1e6);
    }

    /** Small transactions one after another, each with records in several partitions: how long from begin to committed. */
    private static Map<String, Object> transactions(String[] args) throws Exception {
        String topic = args[1];
        int partitions = Integer.parseInt(args[2]);
        int records = Integer.parseInt(args[3]);
        long seconds = Long.parseLong(args[4]);
        long warmup = Long.parseLong(args[5]);
        Histogram latencies = new Histogram(60_000_000_000L, 3);
        byte[] value = new byte[100];
        try (KafkaProducer<byte[], byte[]> producer = producer(args[0], "transactional.id", "bench", "linger.ms", "0")) {
            producer.initTransactions();
            long begin = System.nanoTime() + warmup * 1_000_000_000L;
            long end = begin + seconds * 1_000_000_000L;
            long now = System.nanoTime();
            while (now < end) {
                long began = now;
                producer.beginTransaction();
                for (int i = 0; i < records; i++) {
                    producer.send(new ProducerRecord<>(topic, i % partitions, null, value));
                }
                producer.commitTransaction();
                now = System.nanoTime();
                if (began >= begin) {
                    latencies.recordValue(now - began);
                }
            }
            Map<String, Object> result = new LinkedHashMap<>();
            result.put("requests", latencies.getTotalCount());
            result.put("seconds", (now - begin) / 1e9);
            result.put("per_s", latencies.getTotalCount() * 1e9 / (now - begin));
            percentiles(latencies, result);
            return result;
        }
    }

    private static Map<String, Object> latency(String[] args) throws Exception {
        String bootstrap = args[0];
        String topic = args[1];
        long rate = Long.parseLong(args[2]);
        long seconds = Long.parseLong(args[3]);
        long warmup = Long.parseLong(args[4]);
        Histogram latencies = new Histogram(60_000_000_000L, 3);
        long total = rate * (seconds + warmup);
        KafkaConsumer<byte[], byte[]> consumer = consumer(bootstrap);
        List<TopicPartition> all = assignAll(consumer, topic);
        consumer.seekToEnd(all);
        all.forEach(consumer::position);
        long[] cold = new long[1];
        for (String extra : Arrays.copyOfRange(args, 5, args.length)) {
            String[] side = extra.split("=");
            Thread thread = new Thread(() -> {
                if (side[0].equals("cold")) {
                    readOverAndOver(bootstrap, side[1], cold);
                } else {
                    rewriteKeys(bootstrap, side[1]);
                }
            });
            thread.setDaemon(true);
            thread.start();
        }
        long begin = System.nanoTime() + 200_000_000L;
        long measured = begin + warmup * 1_000_000_000L;
        Thread reader = new Thread(() -> {
            long seen = 0;
            while (seen < total) {
                for (ConsumerRecord<byte[], byte[]> one : consumer.poll(Duration.ofSeconds(1))) {
                    long due = ByteBuffer.wrap(one.value()).getLong();
                    seen++;
                    if (due >= measured) {
                        latencies.recordValue(Math.min(Math.max(System.nanoTime() - due, 0), 60_000_000_000L));
                    }
                }
            }
        });
        reader.start();
        KafkaProducer<byte[], byte[]> producer = producer(bootstrap, "acks", "1", "linger.ms", "0");
        for (long i = 0; i < total; i++) {
            long due = begin + i * 1_000_000_000L / rate;
            for (long left = due - System.nanoTime(); left > 0; left = due - System.nanoTime()) {
                LockSupport.parkNanos(left);
            }
            byte[] value = new byte[100];
            ByteBuffer.wrap(value).putLong(due);
            producer.send(new ProducerRecord<>(topic, value));
        }
        producer.flush();
        reader.join(60_000);
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("records", latencies.getTotalCount());
        result.put("missing", rate * seconds - latencies.getTotalCount());
        percentiles(latencies, result);
        if (cold[0] > 0) {
            result.put("cold_mb_read", cold[0] / 1048576.0);
        }
        return result;
    }

    private static void readOverAndOver(String bootstrap, String topic, long[] bytes) {
        KafkaConsumer<byte[], byte[]> consumer = consumer(bootstrap);
        List<TopicPartition> all = assignAll(consumer, topic);
        while (true) {
            consumer.seekToBeginning(all);
            Map<TopicPartition, Long> ends = consumer.endOffsets(all);
            while (all.stream().anyMatch(p -> consumer.position(p) < ends.get(p))) {
                for (ConsumerRecord<byte[], byte[]> one : consumer.poll(Duration.ofSeconds(1))) {
                    bytes[0] += one.serializedValueSize();
                }
            }
        }
    }

    private static void rewriteKeys(String bootstrap, String topic) {
        KafkaProducer<byte[], byte[]> producer = producer(bootstrap);
        Random random = new Random(7);
        byte[] value = new byte[1000];
        while (true) {
            for (int i = 0; i < 20; i++) {
                random.nextBytes(value);
                producer.send(new ProducerRecord<>(topic, ByteBuffer.allocate(4).putInt(random.nextInt(1000)).array(), value.clone()));
            }
            LockSupport.parkNanos(10_000_000L); // 2 MB/s
        }
    }
}
