import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.Exit;

/**
 * Apache Kafka's own clients and tools, driven by lines of JSON: one request on standard input, one answer on standard
 * output ({"error": ...} when it failed), so that a single JVM serves a whole test run. Bytes travel as base64.
 */
public final class Roundtrip {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** Standard output and error of the tools, which would otherwise mix with the answers. */
    private static final class Captured extends OutputStream {
        private ByteArrayOutputStream into = new ByteArrayOutputStream();

        @Override
        public synchronized void write(int b) {
            into.write(b);
        }

        @Override
        public synchronized void write(byte[] bytes, int from, int length) {
            into.write(bytes, from, length);
        }

        synchronized String take() {
            String text = into.toString(StandardCharsets.UTF_8);
            into = new ByteArrayOutputStream();
            return text;
        }
    }

    /** A tool wants to end the JVM. */
    private static final class Exited extends RuntimeException {
        private static final long serialVersionUID = 1;
        final int status;

        Exited(int status) {
            this.status = status;
        }
    }

    private static final Captured OUT = new Captured();
    private static final Captured ERR = new Captured();

    public static void main(String[] args) throws Exception {
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        PrintStream log = System.err;
        System.setOut(new PrintStream(OUT, true, StandardCharsets.UTF_8));
        Exit.setExitProcedure((status, message) -> {
            throw new Exited(status);
        });
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            ObjectNode answer;
            try {
                answer = serve(JSON.readTree(line), log);
            } catch (Exception e) {
                Throwable cause = e instanceof ExecutionException ? e.getCause() : e;
                answer = JSON.createObjectNode().put("error", cause.toString());
                e.printStackTrace(log);
            }
            answers.println(JSON.writeValueAsString(answer));
        }
    }

    private static ObjectNode serve(JsonNode request, PrintStream log) throws Exception {
        return switch (request.get("op").asText()) {
            case "produce" -> produce(request);
            case "consume" -> consume(request);
            case "offsets" -> offsets(request);
            case "create" -> create(request);
            case "describe" -> describe(request);
            case "delete" -> delete(request);
            case "delete_records" -> deleteRecords(request);
            case "tool" -> tool(request, log);
            case "assign" -> Decisions.assign(request, JSON);
            case "match" -> Decisions.match(request, JSON);
            case "authorize" -> Security.authorize(request, JSON);
            case "map_names" -> Security.mapNames(request, JSON);
            case "kerberos_names" -> Security.kerberosNames(request, JSON);
            case "jaas" -> Security.jaas(request, JSON);
            case "certificate_names" -> Security.certificateNames(request, JSON);
            case "stores" -> Security.stores(request, JSON);
            case "partition_changes" -> PartitionChanges.change(request, JSON);
            case "transact" -> Transactional.transact(request, properties(request), JSON);
            case "pass_on" -> Transactional.passOn(request, properties(request.get("consumer")), properties(request), JSON);
            case "member_start" -> Members.start(request, properties(request), JSON);
            case "member_look" -> Members.look(request, JSON);
            case "member_stop" -> Members.stop(request, JSON);
            case "open_clients" -> openClients();
            case "property" -> property(request);
            default -> throw new IllegalArgumentException("no operation " + request.get("op"));
        };
    }

    /** The producers and consumers that are not closed, by the beans that they register for as long as they live. */
    private static ObjectNode openClients() throws Exception {
        ObjectNode answer = JSON.createObjectNode();
        ArrayNode names = answer.putArray("names");
        MBeanServer beans = ManagementFactory.getPlatformMBeanServer();
        for (String kind : List.of("producer", "consumer")) {
            for (ObjectName name : beans.queryNames(new ObjectName("kafka." + kind + ":type=app-info,*"), null)) {
                names.add(kind + " " + name.getKeyProperty("id"));
            }
        }
        return answer;
    }

    /** A property of the system: Kafka's list of the files and addresses that tokens may come from is one. */
    private static ObjectNode property(JsonNode request) {
        System.setProperty(request.get("name").asText(), request.get("value").asText());
        return JSON.createObjectNode();
    }

    private static Properties properties(JsonNode request, String... defaults) {
        Properties all = new Properties();
        all.put("bootstrap.servers", request.get("bootstrap").asText());
        for (int i = 0; i < defaults.length; i += 2) {
            all.put(defaults[i], defaults[i + 1]);
        }
        if (request.has("config")) {
            request.get("config").properties().forEach(field -> all.put(field.getKey(), field.getValue().asText()));
        }
        return all;
    }

    private static byte[] bytes(JsonNode node) throws Exception {
        return node == null || node.isNull() ? null : node.binaryValue();
    }

    private static ObjectNode produce(JsonNode request) throws Exception {
        ObjectNode answer = JSON.createObjectNode();
        ArrayNode offsets = answer.putArray("offsets");
        ByteArraySerializer plain = new ByteArraySerializer();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(properties(request), plain, plain)) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (JsonNode one : request.get("records")) {
                ProducerRecord<byte[], byte[]> out = new ProducerRecord<>(request.get("topic").asText(), one.get("partition").asInt(),
                    one.get("timestamp").asLong(), bytes(one.get("key")), bytes(one.get("value")));
                for (JsonNode header : one.get("headers")) {
                    out.headers().add(header.get(0).asText(), bytes(header.get(1)));
                }
                sent.add(producer.send(out));
            }
            producer.flush();
            for (Future<RecordMetadata> done : sent) {
                offsets.add(done.get().offset());
            }
        }
        return answer;
    }

    private static List<TopicPartition> assign(Consumer<byte[], byte[]> consumer, JsonNode request) {
        List<TopicPartition> partitions = new ArrayList<>();
        request.get("partitions").forEach(p -> partitions.add(new TopicPartition(request.get("topic").asText(), p.asInt())));
        consumer.assign(partitions);
        return partitions;
    }

    private static void seek(Consumer<byte[], byte[]> consumer, Collection<TopicPartition> partitions, JsonNode from) {
        if (from.isObject()) {
            Map<TopicPartition, Long> times = new HashMap<>();
            partitions.forEach(p -> times.put(p, from.get("timestamp").asLong()));
            Map<TopicPartition, OffsetAndTimestamp> found = consumer.offsetsForTimes(times);
            for (TopicPartition p : partitions) {
                if (found.get(p) == null) {
                    consumer.seekToEnd(List.of(p));
                } else {
                    consumer.seek(p, found.get(p).offset());
                }
            }
        } else if (from.isNumber()) {
            partitions.forEach(p -> consumer.seek(p, from.asLong()));
        } else if (from.asText().equals("end")) {
            consumer.seekToEnd(partitions);
        } else {
            consumer.seekToBeginning(partitions);
        }
    }

    private static ObjectNode consume(JsonNode request) throws Exception {
        ObjectNode answer = JSON.createObjectNode();
        ArrayNode records = answer.putArray("records");
        ByteArrayDeserializer plain = new ByteArrayDeserializer();
        Properties config = properties(request, "enable.auto.commit", "false");
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(config, plain, plain)) {
            List<TopicPartition> partitions = assign(consumer, request);
            seek(consumer, partitions, request.get("from"));
            long deadline = System.nanoTime() + request.get("timeout_ms").asLong() * 1_000_000;
            int wanted = request.get("count").asInt();
            if (request.has("then")) { // what only someone who stands at the end already will see
                partitions.forEach(consumer::position);
                produce(request.get("then"));
            }
            Map<TopicPartition, Long> ends = wanted < 0 ? consumer.endOffsets(partitions) : Map.of();
            while (System.nanoTime() < deadline && !done(consumer, records.size(), wanted, ends)) {
                for (ConsumerRecord<byte[], byte[]> in : consumer.poll(Duration.ofMillis(100))) {
                    ObjectNode one = records.addObject();
                    one.put("partition", in.partition()).put("offset", in.offset()).put("timestamp", in.timestamp());
                    one.put("timestamp_type", in.timestampType().id).put("key", in.key()).put("value", in.value());
                    one.put("leader_epoch", in.leaderEpoch().orElse(-1));
                    ArrayNode headers = one.putArray("headers");
                    for (Header header : in.headers()) {
                        headers.addArray().add(header.key()).add(header.value());
                    }
                }
            }
        }
        return answer;
    }

    /** Enough records, or (count -1) every partition read up to where it ended when we came. */
    private static boolean done(Consumer<byte[], byte[]> consumer, int have, int wanted, Map<TopicPartition, Long> ends) {
        if (wanted >= 0) {
            return have >= wanted;
        }
        return ends.entrySet().stream().allMatch(e -> consumer.position(e.getKey()) >= e.getValue());
    }

    private static ObjectNode offsets(JsonNode request) {
        ObjectNode answer = JSON.createObjectNode();
        ByteArrayDeserializer plain = new ByteArrayDeserializer();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(properties(request), plain, plain)) {
            List<TopicPartition> partitions = assign(consumer, request);
            ObjectNode beginning = answer.putObject("beginning");
            consumer.beginningOffsets(partitions).forEach((p, at) -> beginning.put(String.valueOf(p.partition()), at));
            ObjectNode end = answer.putObject("end");
            consumer.endOffsets(partitions).forEach((p, at) -> end.put(String.valueOf(p.partition()), at));
            ObjectNode byTime = answer.putObject("by_time");
            for (JsonNode when : request.path("timestamps")) {
                Map<TopicPartition, Long> times = new HashMap<>();
                partitions.forEach(p -> times.put(p, when.asLong()));
                ObjectNode found = byTime.putObject(when.asText());
                consumer.offsetsForTimes(times).forEach((p, at) -> {
                    if (at != null) {
                        found.putArray(String.valueOf(p.partition())).add(at.offset()).add(at.timestamp());
                    }
                });
            }
        }
        return answer;
    }

    private static ObjectNode create(JsonNode request) throws Exception {
        try (Admin admin = Admin.create(properties(request))) {
            NewTopic topic = new NewTopic(request.get("topic").asText(), request.get("partitions").asInt(), (short) 1);
            Map<String, String> configs = new HashMap<>();
            request.get("configs").properties().forEach(field -> configs.put(field.getKey(), field.getValue().asText()));
            admin.createTopics(List.of(topic.configs(configs))).all().get();
            return JSON.createObjectNode();
        }
    }

    private static ObjectNode describe(JsonNode request) throws Exception {
        String topic = request.get("topic").asText();
        try (Admin admin = Admin.create(properties(request))) {
            ObjectNode answer = JSON.createObjectNode();
            var described = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
            answer.put("topic_id", described.topicId().toString()).put("partitions", described.partitions().size());
            answer.put("cluster_id", admin.describeCluster().clusterId().get());
            answer.put("nodes", admin.describeCluster().nodes().get().size());
            ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
            ObjectNode configs = answer.putObject("configs");
            admin.describeConfigs(List.of(resource)).all().get().get(resource).entries()
                .forEach(e -> configs.putArray(e.name()).add(e.value()).add(e.source().toString()));
            return answer;
        }
    }

    private static ObjectNode delete(JsonNode request) throws Exception {
        try (Admin admin = Admin.create(properties(request))) {
            admin.deleteTopics(List.of(request.get("topic").asText())).all().get();
            return JSON.createObjectNode();
        }
    }

    private static ObjectNode deleteRecords(JsonNode request) throws Exception {
        TopicPartition partition = new TopicPartition(request.get("topic").asText(), request.get("partition").asInt());
        try (Admin admin = Admin.create(properties(request))) {
            RecordsToDelete before = RecordsToDelete.beforeOffset(request.get("before").asLong());
            long low = admin.deleteRecords(Map.of(partition, before)).lowWatermarks().get(partition).get().lowWatermark();
            return JSON.createObjectNode().put("low_watermark", low);
        }
    }

    private static ObjectNode tool(JsonNode request, PrintStream log) throws Exception {
        List<String> args = new ArrayList<>();
        request.get("args").forEach(arg -> args.add(arg.asText()));
        int status = 0;
        OUT.take();
        ERR.take();
        System.setErr(new PrintStream(ERR, true, StandardCharsets.UTF_8));
        try {
            Class.forName(request.get("class").asText()).getMethod("main", String[].class).invoke(null, (Object) args.toArray(new String[0]));
        } catch (java.lang.reflect.InvocationTargetException e) {
            if (e.getCause() instanceof Exited exited) {
                status = exited.status;
            } else {
                status = 1;
                e.getCause().printStackTrace();
            }
        } finally {
            System.setErr(log);
        }
        return JSON.createObjectNode().put("status", status).put("out", OUT.take()).put("err", ERR.take());
    }
}
