import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import org.apache.flume.node.Application;

/** Runs a Flume agent that relays the topic in to the topic out through a channel in memory, until it is killed. Arguments: bootstrap, folder. */
public class Relay {
    public static void main(String[] args) throws Exception {
        String agent = String.join("\n",
            "relay.sources = in",
            "relay.channels = memory",
            "relay.sinks = out",
            "relay.channels.memory.type = memory",
            "relay.channels.memory.capacity = 10000",
            "relay.channels.memory.transactionCapacity = 1000",
            "relay.sources.in.type = org.apache.flume.source.kafka.KafkaSource",
            "relay.sources.in.channels = memory",
            "relay.sources.in.batchSize = 1000",
            "relay.sources.in.batchDurationMillis = 200",
            "relay.sources.in.kafka.bootstrap.servers = " + args[0],
            "relay.sources.in.kafka.topics = in",
            "relay.sources.in.kafka.consumer.group.id = relay",
            "relay.sources.in.kafka.consumer.auto.offset.reset = earliest",
            // The source would name its own topic to the sink, which would write there, round and round.
            "relay.sources.in.setTopicHeader = false",
            "relay.sinks.out.type = org.apache.flume.sink.kafka.KafkaSink",
            "relay.sinks.out.channel = memory",
            "relay.sinks.out.kafka.bootstrap.servers = " + args[0],
            "relay.sinks.out.kafka.topic = out",
            "relay.sinks.out.kafka.producer.acks = all",
            "relay.sinks.out.flumeBatchSize = 500",
            "");
        Path file = Paths.get(args[1], "relay.properties");
        Files.write(file, agent.getBytes());
        Application.main(new String[] {"--name", "relay", "--conf-file", file.toString(), "--no-reload-conf"});
    }
}
