import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Group members of Apache Kafka's consumer, a thread each: commands and history are those of worker.py. */
public final class Members {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Map<String, String> ASSIGNORS = Map.of(
        "range", "org.apache.kafka.clients.consumer.RangeAssignor",
        "cooperative-sticky", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");

    private static final class Member extends Thread implements ConsumerRebalanceListener {
        private final JsonNode command;
        private final String bootstrap;
        private final FileChannel history;
        private volatile boolean closing;
        private volatile long resumeAt;
        private KafkaConsumer<byte[], byte[]> consumer;
        private int epoch = -1;

        Member(JsonNode command, String bootstrap, FileChannel history) {
            super(command.get("member").asText());
            this.command = command;
            this.bootstrap = bootstrap;
            this.history = history;
        }

        private ObjectNode event(String kind) {
            ObjectNode event = JSON.createObjectNode();
            event.put("t", System.nanoTime()).put("e", kind).put("m", getName()).put("g", command.get("group").asText());
            return event;
        }

        private void note(ObjectNode event) {
            try {
                byte[] line = (JSON.writeValueAsString(event) + "\n").getBytes(StandardCharsets.UTF_8);
                synchronized (history) {
                    history.write(ByteBuffer.wrap(line));
                }
            } catch (Exception failed) {
                throw new IllegalStateException(failed);
            }
        }

        private void note(String kind, Collection<TopicPartition> partitions) {
            ObjectNode event = event(kind).put("n", epoch);
            TreeSet<String> names = new TreeSet<>();
            partitions.forEach(one -> names.add(one.toString()));
            names.forEach(event.putArray("p")::add);
            note(event);
        }

        void pauseFor(int ms) {
            note(event("pause").put("ms", ms));
            resumeAt = System.nanoTime() + ms * 1_000_000L;
        }

        @Override
        public void run() {
            note(event("started"));
            try {
                live();
                note(event("closed"));
            } catch (Throwable failed) {
                note(event("died").put("why", failed.toString()));
                failed.printStackTrace();
            }
        }

        private void live() throws InterruptedException {
            Properties all = new Properties();
            String protocol = command.get("protocol").asText();
            all.put("bootstrap.servers", bootstrap);
            all.put("group.id", command.get("group").asText());
            all.put("group.protocol", protocol);
            all.put("auto.offset.reset", "earliest");
            all.put("enable.auto.commit", "false");
            all.put("max.poll.records", "200");
            all.put("max.poll.interval.ms", "15000");
            all.put("reconnect.backoff.max.ms", "500");
            all.put("default.api.timeout.ms", "10000");
            if (!command.get("instance").isNull()) {
                all.put("group.instance.id", command.get("instance").asText());
            }
            if (protocol.equals("consumer")) {
                all.put("group.remote.assignor", command.get("assignor").asText());
            } else {
                all.put("session.timeout.ms", "8000");
                all.put("heartbeat.interval.ms", "1000");
                all.put("partition.assignment.strategy", ASSIGNORS.get(command.get("assignor").asText()));
            }
            ByteArrayDeserializer plain = new ByteArrayDeserializer();
            consumer = new KafkaConsumer<>(all, plain, plain);
            try {
                consumer.subscribe(List.of("churn-a", "churn-b"), this);
                while (!closing) {
                    if (resumeAt > System.nanoTime()) {
                        Thread.sleep(50);
                    } else {
                        turn();
                    }
                }
            } finally {
                consumer.close();
            }
        }

        private void turn() {
            ConsumerRecords<byte[], byte[]> records;
            try {
                records = consumer.poll(Duration.ofMillis(300));
            } catch (org.apache.kafka.common.errors.RetriableException failed) {
                note(event("trouble").put("why", failed.getClass().getSimpleName()));
                return;
            }
            if (records.isEmpty()) {
                return;
            }
            ObjectNode handled = event("handled").put("n", epoch);
            ObjectNode offsets = handled.putObject("o");
            ObjectNode positions = JSON.createObjectNode();
            Map<TopicPartition, OffsetAndMetadata> places = new HashMap<>();
            for (TopicPartition place : records.partitions()) {
                var array = offsets.putArray(place.toString());
                long last = -1;
                for (ConsumerRecord<byte[], byte[]> one : records.records(place)) {
                    array.add(one.offset());
                    last = one.offset();
                }
                positions.put(place.toString(), last + 1);
                places.put(place, new OffsetAndMetadata(last + 1));
            }
            note(handled);
            try {
                consumer.commitSync(places);
                ObjectNode committed = event("committed").put("n", epoch);
                committed.set("o", positions);
                note(committed);
            } catch (org.apache.kafka.common.KafkaException failed) {
                ObjectNode refused = event("commit failed").put("n", epoch);
                refused.set("o", positions);
                refused.putArray("why").add(failed.getClass().getSimpleName());
                note(refused);
            }
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            epoch = consumer.groupMetadata().generationId();
            note("assigned", partitions);
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            note("revoked", partitions);
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            note("lost", partitions);
        }
    }

    public static void main(String[] args) throws Exception {
        FileChannel history = FileChannel.open(Path.of(args[1]), StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        Map<String, Member> members = new HashMap<>();
        List<Member> all = new ArrayList<>();
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            JsonNode command = JSON.readTree(line);
            String name = command.get("member").asText();
            switch (command.get("op").asText()) {
                case "start" -> {
                    Member member = new Member(command, args[0], history);
                    members.put(name, member);
                    all.add(member);
                    member.start();
                }
                case "close" -> members.remove(name).closing = true;
                case "pause" -> members.get(name).pauseFor(command.get("ms").asInt());
                default -> throw new IllegalArgumentException(line);
            }
        }
        members.values().forEach(member -> member.closing = true);
        for (Member member : all) {
            member.join(40_000);
        }
        System.exit(0);
    }
}
