import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.re2j.Pattern;
import com.google.re2j.PatternSyntaxException;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

/** What Apache Kafka's group coordinator decides without a broker: assignments, and which names a pattern means. */
final class Decisions {
    private Decisions() {
    }

    /** Topics are small numbers, which a HashSet keeps in order; members come in the order they are given in. */
    static ObjectNode assign(JsonNode request, ObjectMapper json) {
        PartitionAssignor assignor = request.get("assignor").asText().equals("range") ? new RangeAssignor() : new UniformAssignor();
        ObjectNode answer = json.createObjectNode();
        ArrayNode results = answer.putArray("results");
        for (JsonNode group : request.get("groups")) {
            results.add(assignOne(assignor, group, json));
        }
        return answer;
    }

    private static ObjectNode assignOne(PartitionAssignor assignor, JsonNode group, ObjectMapper json) {
        Map<Uuid, Integer> topics = new HashMap<>();
        group.get("topics").properties().forEach(topic -> topics.put(id(topic.getKey()), topic.getValue().asInt()));
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new LinkedHashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        for (JsonNode member : group.get("members")) {
            String memberId = member.get("id").asText();
            Set<Uuid> subscription = new TreeSet<>();
            member.get("topics").forEach(topic -> subscription.add(id(topic.asText())));
            Map<Uuid, Set<Integer>> owned = new TreeMap<>();
            member.get("owned").properties().forEach(entry -> {
                Set<Integer> partitions = new TreeSet<>();
                entry.getValue().forEach(partition -> partitions.add(partition.asInt()));
                owned.put(id(entry.getKey()), partitions);
                partitions.forEach(partition ->
                    owners.computeIfAbsent(id(entry.getKey()), key -> new HashMap<>()).put(partition, memberId));
            });
            members.put(memberId, new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(),
                Optional.ofNullable(member.get("instance").textValue()),
                subscription,
                new Assignment(Collections.unmodifiableMap(owned))));
        }
        SubscriptionType type = group.get("homogeneous").asBoolean() ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        GroupAssignment assignment = assignor.assign(new GroupSpecImpl(members, type, owners), new SubscribedTopicDescriber() {
            @Override
            public int numPartitions(Uuid topicId) {
                return topics.getOrDefault(topicId, -1);
            }

            @Override
            public Set<String> racksForPartition(Uuid topicId, int partition) {
                return Set.of();
            }
        });
        ObjectNode result = json.createObjectNode();
        assignment.members().forEach((memberId, mine) -> {
            ObjectNode shown = result.putObject(memberId);
            mine.partitions().forEach((topic, partitions) -> {
                ArrayNode numbers = shown.putArray(Long.toString(topic.getLeastSignificantBits()));
                new TreeSet<>(partitions).forEach(numbers::add);
            });
        });
        return result;
    }

    private static Uuid id(String number) {
        return new Uuid(0, Long.parseLong(number));
    }

    /** For each pattern the names that match as a whole, or null when the pattern is refused. */
    static ObjectNode match(JsonNode request, ObjectMapper json) {
        ObjectNode answer = json.createObjectNode();
        ArrayNode results = answer.putArray("results");
        for (JsonNode pattern : request.get("patterns")) {
            try {
                Pattern compiled = Pattern.compile(pattern.asText());
                ArrayNode matched = json.createArrayNode();
                for (JsonNode name : request.get("names")) {
                    if (compiled.matcher(name.asText()).matches()) {
                        matched.add(name.asText());
                    }
                }
                results.add(matched);
            } catch (PatternSyntaxException e) {
                results.addNull();
            }
        }
        return answer;
    }
}
