import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.message.CreateTopicsRequestData.CreatableTopic;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.api.streams.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.streams.assignor.TopologyDescriber;
import org.apache.kafka.coordinator.group.generated.StreamsGroupTopologyValue;
import org.apache.kafka.coordinator.group.streams.StreamsTopology;
import org.apache.kafka.coordinator.group.streams.assignor.AssignmentConfigsImpl;
import org.apache.kafka.coordinator.group.streams.assignor.GroupSpecImpl;
import org.apache.kafka.coordinator.group.streams.assignor.MemberMetadataAndStateImpl;
import org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor;
import org.apache.kafka.coordinator.group.streams.topics.ConfiguredTopology;
import org.apache.kafka.coordinator.group.streams.topics.InternalTopicManager;
import org.slf4j.helpers.NOPLogger;

/** Plans of streams groups as Apache Kafka makes them: lines of JSON in, one line of JSON out for each. */
final class StreamsPlan {
    private static final ObjectMapper JSON = new ObjectMapper();

    private StreamsPlan() {
    }

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode request = JSON.readTree(line);
            ObjectNode answer = JSON.createObjectNode();
            try {
                if (request.has("members")) {
                    assign(request, answer);
                } else {
                    configure(request, answer);
                }
            } catch (RuntimeException refused) {
                answer.removeAll();
                answer.put("error", refused.getClass().getSimpleName());
            }
            out.println(JSON.writeValueAsString(answer));
        }
        out.flush();
    }

    private static void assign(JsonNode request, ObjectNode answer) {
        Map<String, Integer> tasks = new TreeMap<>();
        Set<String> stateful = new TreeSet<>();
        request.get("subtopologies").properties().forEach(each -> {
            tasks.put(each.getKey(), each.getValue().get("tasks").asInt());
            if (each.getValue().get("stateful").asBoolean()) {
                stateful.add(each.getKey());
            }
        });
        Map<String, MemberMetadataAndStateImpl> members = new LinkedHashMap<>();
        for (JsonNode member : request.get("members")) {
            Map<String, Map<Integer, Long>> offsets = new TreeMap<>();
            member.get("offsets").forEach(each ->
                offsets.computeIfAbsent(each.get(0).asText(), key -> new TreeMap<>()).put(each.get(1).asInt(), each.get(2).asLong()));
            members.put(member.get("id").asText(), new MemberMetadataAndStateImpl(
                Optional.empty(), Optional.empty(), member.get("process").asText(), Map.of(),
                taskSet(member.get("active")), taskSet(member.get("standby")), Map.of(), offsets, Map.of()));
        }
        TopologyDescriber topology = new TopologyDescriber() {
            @Override
            public List<String> subtopologies() {
                return List.copyOf(tasks.keySet());
            }

            @Override
            public int maxNumInputPartitions(String subtopology) {
                return tasks.get(subtopology);
            }

            @Override
            public boolean isStateful(String subtopology) {
                return stateful.contains(subtopology);
            }
        };
        AssignmentConfigsImpl configs = new AssignmentConfigsImpl(request.get("standbys").asInt(), List.of());
        GroupAssignment assignment = new StickyTaskAssignor().assign(new GroupSpecImpl(members, configs), topology);
        assignment.members().forEach((member, given) -> {
            ObjectNode roles = answer.putObject(member);
            putTasks(roles.putObject("active"), given.activeTasks());
            putTasks(roles.putObject("standby"), given.standbyTasks());
        });
    }

    private static Map<String, Set<Integer>> taskSet(JsonNode node) {
        Map<String, Set<Integer>> tasks = new TreeMap<>();
        node.properties().forEach(each -> {
            Set<Integer> partitions = tasks.computeIfAbsent(each.getKey(), key -> new TreeSet<>());
            each.getValue().forEach(partition -> partitions.add(partition.asInt()));
        });
        return tasks;
    }

    private static void putTasks(ObjectNode node, Map<String, Set<Integer>> tasks) {
        new TreeMap<>(tasks).forEach((subtopology, partitions) -> {
            ArrayNode list = node.putArray(subtopology);
            new TreeSet<>(partitions).forEach(list::add);
        });
    }

    /** The topology is the bytes of the group's record. */
    private static void configure(JsonNode request, ObjectNode answer) {
        ByteBuffer record = ByteBuffer.wrap(Base64.getDecoder().decode(request.get("topology").asText()));
        StreamsTopology topology = StreamsTopology.fromRecord(new StreamsGroupTopologyValue(new ByteBufferAccessor(record), (short) 0));
        Map<String, Integer> counts = new HashMap<>();
        request.get("topics").properties().forEach(each -> counts.put(each.getKey(), each.getValue().asInt()));
        CoordinatorMetadataImage image = proxy(CoordinatorMetadataImage.class, name ->
            Optional.ofNullable(counts.get(name)).map(count ->
                proxy(CoordinatorMetadataImage.TopicMetadata.class, nothing -> count)));
        ConfiguredTopology configured =
            InternalTopicManager.configureTopics(NOPLogger.NOP_LOGGER, "g", "m", 0, topology, image, Time.SYSTEM);
        answer.put("status", configured.topicConfigurationException().map(problem -> (int) problem.status().code()).orElse(-1));
        ObjectNode subtopologies = answer.putObject("subtopologies");
        configured.subtopologies().ifPresent(all -> all.forEach((id, each) -> {
            ObjectNode node = subtopologies.putObject(id);
            node.put("tasks", each.numberOfTasks());
            ObjectNode internal = node.putObject("internal");
            each.repartitionSourceTopics().values().forEach(topic -> internal.put(topic.name(), topic.numberOfPartitions()));
            each.stateChangelogTopics().values().forEach(topic -> internal.put(topic.name(), topic.numberOfPartitions()));
            node.put("stateful", !each.stateChangelogTopics().isEmpty());
        }));
        ObjectNode missing = answer.putObject("missing");
        for (CreatableTopic topic : new TreeMap<>(configured.internalTopicsToBeCreated()).values()) {
            ObjectNode node = missing.putObject(topic.name());
            node.put("partitions", topic.numPartitions());
            node.put("replication_factor", topic.replicationFactor());
            ObjectNode configs = node.putObject("configs");
            topic.configs().forEach(config -> configs.put(config.name(), config.value()));
        }
    }

    private interface Answer {
        Object to(Object name);
    }

    /** An object of whose methods only one is called: the topic by name, or the count. */
    private static <T> T proxy(Class<T> type, Answer answer) {
        return type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type},
            (self, method, args) -> answer.to(args == null ? null : args[0])));
    }
}
