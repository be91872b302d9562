import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Members of groups that go on while others come and go: each has a name and a thread, and commits what it has read. */
final class Members {
    private static final Map<String, Members> ALL = new ConcurrentHashMap<>();

    private final KafkaConsumer<String, String> consumer;
    private final List<String> seen = new ArrayList<>();
    private final Thread thread;
    private volatile String how;
    private volatile String failed;
    private volatile List<TopicPartition> assigned = List.of();

    private Members(JsonNode request, Properties config) {
        consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
        if (request.has("pattern")) {
            consumer.subscribe(new SubscriptionPattern(request.get("pattern").asText()));
        } else {
            List<String> topics = new ArrayList<>();
            request.get("topics").forEach(topic -> topics.add(topic.asText()));
            consumer.subscribe(topics);
        }
        thread = new Thread(this::run, request.get("name").asText());
        thread.setDaemon(true);
        thread.start();
    }

    private void run() {
        try {
            while (how == null) {
                for (ConsumerRecord<String, String> in : consumer.poll(Duration.ofMillis(100))) {
                    synchronized (seen) {
                        seen.add(in.value());
                    }
                }
                consumer.commitSync();
                assigned = List.copyOf(consumer.assignment());
            }
            CloseOptions.GroupMembershipOperation last = how.equals("vanish")
                ? CloseOptions.GroupMembershipOperation.REMAIN_IN_GROUP
                : CloseOptions.GroupMembershipOperation.DEFAULT;
            consumer.close(CloseOptions.groupMembershipOperation(last));
        } catch (RuntimeException e) {
            failed = e.toString();
            try {
                consumer.close(CloseOptions.timeout(Duration.ZERO));
            } catch (RuntimeException again) {
                failed += ", then " + again;
            }
        }
    }

    /** Begins a member: name, topics or an RE2 pattern, config. */
    static ObjectNode start(JsonNode request, Properties config, ObjectMapper json) {
        ALL.put(request.get("name").asText(), new Members(request, config));
        return json.createObjectNode();
    }

    /** What a member has read so far, and what is assigned to it. */
    static ObjectNode look(JsonNode request, ObjectMapper json) {
        return ALL.get(request.get("name").asText()).state(json);
    }

    private ObjectNode state(ObjectMapper json) {
        if (failed != null) {
            throw new IllegalStateException(failed);
        }
        ObjectNode answer = json.createObjectNode();
        ArrayNode values = answer.putArray("values");
        synchronized (seen) {
            seen.forEach(values::add);
        }
        ArrayNode partitions = answer.putArray("partitions");
        assigned.stream().map(TopicPartition::partition).sorted().forEach(partitions::add);
        return answer;
    }

    /** Ends a member, also one that has failed: it leaves, or, with how=vanish, it is only not heard of any more. */
    static ObjectNode stop(JsonNode request, ObjectMapper json) throws InterruptedException {
        Members member = ALL.remove(request.get("name").asText());
        List<TopicPartition> last = member.assigned;
        member.how = request.get("how").asText();
        member.thread.join();
        member.assigned = last;
        return member.state(json);
    }
}
