import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** A transactional producer, and one that passes records on from a group's topic within transactions. */
final class Transactional {
    private Transactional() {
    }

    private static KafkaProducer<byte[], byte[]> producer(Properties config, JsonNode request) {
        ByteArraySerializer plain = new ByteArraySerializer();
        config.put("transactional.id", request.get("name").asText());
        KafkaProducer<byte[], byte[]> made = new KafkaProducer<>(config, plain, plain);
        try {
            made.initTransactions();
        } catch (RuntimeException e) {
            made.close(Duration.ZERO);
            throw e;
        }
        return made;
    }

    /** Each step writes its values, partition by partition, and ends as it says: commit, abort, or not at all. */
    static ObjectNode transact(JsonNode request, Properties config, ObjectMapper json) throws Exception {
        KafkaProducer<byte[], byte[]> producer = producer(config, request);
        try {
            for (JsonNode step : request.get("steps")) {
                producer.beginTransaction();
                for (JsonNode value : step.get("values")) {
                    byte[] bytes = value.get(1).asText().getBytes(StandardCharsets.UTF_8);
                    producer.send(new ProducerRecord<>(request.get("topic").asText(), value.get(0).asInt(), bytes, bytes)).get();
                }
                switch (step.get("end").asText()) {
                    case "commit" -> producer.commitTransaction();
                    case "abort" -> producer.abortTransaction();
                    default -> producer.flush();
                }
            }
        } finally {
            producer.close(Duration.ZERO); // without ending what is open
        }
        return json.createObjectNode();
    }

    /** Passes `count` records from one topic to another; every third transaction is aborted, and its records are read again. */
    static ObjectNode passOn(JsonNode request, Properties consuming, Properties producing, ObjectMapper json) throws Exception {
        ByteArrayDeserializer plain = new ByteArrayDeserializer();
        consuming.put("group.id", request.get("group").asText());
        consuming.put("isolation.level", "read_committed");
        consuming.put("enable.auto.commit", "false");
        consuming.put("auto.offset.reset", "earliest");
        consuming.put("max.poll.records", "7");
        ObjectNode answer = json.createObjectNode();
        ArrayNode errors = answer.putArray("errors");
        int passed = 0;
        int transactions = 0;
        int wanted = request.get("count").asInt();
        long deadline = System.nanoTime() + request.get("timeout_ms").asLong() * 1_000_000;
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(consuming, plain, plain);
             KafkaProducer<byte[], byte[]> producer = producer(producing, request)) {
            consumer.subscribe(List.of(request.get("from").asText()));
            while (passed < wanted && System.nanoTime() < deadline) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(200));
                if (records.isEmpty()) {
                    continue;
                }
                producer.beginTransaction();
                Map<TopicPartition, OffsetAndMetadata> next = new HashMap<>();
                for (ConsumerRecord<byte[], byte[]> in : records) {
                    producer.send(new ProducerRecord<>(request.get("to").asText(), in.key(), in.value()));
                    next.put(new TopicPartition(in.topic(), in.partition()), new OffsetAndMetadata(in.offset() + 1));
                }
                producer.sendOffsetsToTransaction(next, consumer.groupMetadata());
                if (++transactions % 3 == 0) {
                    producer.abortTransaction();
                    Map<TopicPartition, OffsetAndMetadata> committed = consumer.committed(consumer.assignment());
                    for (TopicPartition partition : consumer.assignment()) {
                        OffsetAndMetadata at = committed.get(partition);
                        consumer.seek(partition, at == null ? 0 : at.offset());
                    }
                } else {
                    producer.commitTransaction();
                    passed += records.count();
                }
            }
        } catch (Exception e) {
            errors.add(e.toString());
        }
        return answer.put("passed", passed).put("transactions", transactions);
    }
}
