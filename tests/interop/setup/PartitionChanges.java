import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.controller.PartitionChangeBuilder;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;

/** What Apache Kafka's controller writes when a partition is to change: elections, ISR, ELR, reassignments, epochs. */
final class PartitionChanges {
    private PartitionChanges() {
    }

    /** Directories are small numbers. */
    static ObjectNode change(JsonNode request, ObjectMapper json) {
        ObjectNode answer = json.createObjectNode();
        ArrayNode results = answer.putArray("results");
        for (JsonNode each : request.get("cases")) {
            Optional<ApiMessageAndVersion> record = builder(each).build();
            if (record.isEmpty()) {
                results.addNull();
            } else {
                shown((PartitionChangeRecord) record.get().message(), results.addObject());
            }
        }
        return answer;
    }

    private static PartitionChangeBuilder builder(JsonNode each) {
        JsonNode before = each.get("partition");
        List<Integer> acceptable = numbers(each.get("acceptable"));
        PartitionChangeBuilder builder = new PartitionChangeBuilder(
            partition(before), new Uuid(0, 7), each.get("number").asInt(), acceptable::contains,
            MetadataVersion.fromFeatureLevel((short) each.get("metadata_version").asInt()),
            each.get("min_isr").asInt(), each.get("elr").asBoolean());
        builder.setDefaultDirProvider(broker -> new Uuid(9, broker));
        builder.setElection(PartitionChangeBuilder.Election.valueOf(each.get("election").asText()));
        if (each.has("isr")) {
            builder.setTargetIsr(numbers(each.get("isr")));
        }
        if (each.has("replicas")) {
            builder.setTargetReplicas(numbers(each.get("replicas")));
        }
        if (each.has("adding")) {
            builder.setTargetAdding(numbers(each.get("adding")));
        }
        if (each.has("removing")) {
            builder.setTargetRemoving(numbers(each.get("removing")));
        }
        if (each.has("recovery")) {
            builder.setTargetLeaderRecoveryState(LeaderRecoveryState.of((byte) each.get("recovery").asInt()));
        }
        if (each.has("unclean_shutdown")) {
            builder.setUncleanShutdownReplicas(List.of(each.get("unclean_shutdown").asInt()));
        }
        if (each.has("moved")) {
            builder.setDirectory(each.get("moved").asInt(), new Uuid(8, 8));
        }
        return builder;
    }

    private static PartitionRegistration partition(JsonNode before) {
        return new PartitionRegistration.Builder()
            .setReplicas(array(before.get("replicas")))
            .setDirectories(numbers(before.get("directories")).stream().map(n -> new Uuid(9, n)).toArray(Uuid[]::new))
            .setIsr(array(before.get("isr")))
            .setElr(array(before.get("elr")))
            .setLastKnownElr(array(before.get("last_known_elr")))
            .setAddingReplicas(array(before.get("adding")))
            .setRemovingReplicas(array(before.get("removing")))
            .setLeader(before.get("leader").asInt())
            .setLeaderRecoveryState(LeaderRecoveryState.of((byte) before.get("recovery").asInt()))
            .setLeaderEpoch(3).setPartitionEpoch(5).build();
    }

    private static void shown(PartitionChangeRecord record, ObjectNode result) {
        result.put("leader", record.leader());
        result.put("recovery", record.leaderRecoveryState());
        put(result, "isr", record.isr());
        put(result, "replicas", record.replicas());
        put(result, "adding", record.addingReplicas());
        put(result, "removing", record.removingReplicas());
        put(result, "elr", record.eligibleLeaderReplicas());
        put(result, "last_known_elr", record.lastKnownElr());
        ArrayNode directories = record.directories() == null ? null : result.putArray("directories");
        if (directories != null) {
            record.directories().forEach(id -> directories.add(id.getMostSignificantBits() + "/" + id.getLeastSignificantBits()));
        }
    }

    private static void put(ObjectNode result, String name, List<Integer> values) {
        if (values != null) {
            ArrayNode array = result.putArray(name);
            values.forEach(array::add);
        }
    }

    private static List<Integer> numbers(JsonNode node) {
        List<Integer> result = new ArrayList<>();
        node.forEach(each -> result.add(each.asInt()));
        return result;
    }

    private static int[] array(JsonNode node) {
        return numbers(node).stream().mapToInt(Integer::intValue).toArray();
    }
}
