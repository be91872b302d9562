import java.nio.charset.StandardCharsets;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** Relays the topic in to the topic out, exactly once. Arguments: bootstrap, folder of checkpoints, checkpoint to go on from or "". */
public class Relay {
    public static void main(String[] args) throws Exception {
        Configuration config = new Configuration();
        config.setString("execution.checkpointing.interval", "400 ms");
        config.setString("execution.checkpointing.mode", "EXACTLY_ONCE");
        config.setString("execution.checkpointing.storage", "filesystem");
        config.setString("execution.checkpointing.dir", "file://" + args[1]);
        config.setString("execution.checkpointing.num-retained", "3");
        config.setString("execution.checkpointing.tolerable-failed-checkpoints", "1000");
        config.setString("execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION");
        config.setString("restart-strategy.type", "fixed-delay");
        config.setString("restart-strategy.fixed-delay.attempts", "1000");
        config.setString("restart-strategy.fixed-delay.delay", "500 ms");
        if (!args[2].isEmpty()) {
            config.setString("execution.state-recovery.path", "file://" + args[2]);
        }
        StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(2, config);
        KafkaSource<String> source = KafkaSource.<String>builder()
            .setBootstrapServers(args[0])
            .setTopics("in")
            .setGroupId("relay")
            .setStartingOffsets(OffsetsInitializer.earliest())
            .setValueOnlyDeserializer(new SimpleStringSchema())
            .setProperty("isolation.level", "read_committed")
            .build();
        KafkaSink<String> sink = KafkaSink.<String>builder()
            .setBootstrapServers(args[0])
            .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
            .setTransactionalIdPrefix("relay")
            .setProperty("transaction.timeout.ms", "120000")
            .setRecordSerializer(KafkaRecordSerializationSchema.<String>builder()
                .setTopic("out")
                .setValueSerializationSchema(new SimpleStringSchema(StandardCharsets.UTF_8))
                .build())
            .build();
        env.fromSource(source, WatermarkStrategy.noWatermarks(), "in").sinkTo(sink);
        env.execute("relay");
    }
}
