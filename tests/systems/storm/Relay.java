import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.storm.Config;
import org.apache.storm.LocalCluster;
import org.apache.storm.kafka.bolt.KafkaBolt;
import org.apache.storm.kafka.bolt.mapper.FieldNameBasedTupleToKafkaMapper;
import org.apache.storm.kafka.bolt.selector.DefaultTopicSelector;
import org.apache.storm.kafka.spout.FirstPollOffsetStrategy;
import org.apache.storm.kafka.spout.KafkaSpout;
import org.apache.storm.kafka.spout.KafkaSpoutConfig;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Values;

/** Relays the topic in to the topic out with Storm's spout and bolt, in a cluster inside this process, until it is killed. Arguments: bootstrap, folder. */
public class Relay {
    public static void main(String[] args) throws Exception {
        System.setProperty("storm.local.dir", args[1]);
        KafkaSpoutConfig<String, String> spout = KafkaSpoutConfig.builder(args[0], "in")
            .setProp(ConsumerConfig.GROUP_ID_CONFIG, "relay")
            .setFirstPollOffsetStrategy(FirstPollOffsetStrategy.EARLIEST)
            .setRecordTranslator(record -> new Values(record.key(), record.value()), new Fields("key", "message"))
            .build();
        Properties producer = new Properties();
        producer.put("bootstrap.servers", args[0]);
        producer.put("acks", "all");
        producer.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        producer.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        KafkaBolt<String, String> bolt = new KafkaBolt<String, String>()
            .withProducerProperties(producer)
            .withTopicSelector(new DefaultTopicSelector("out"))
            .withTupleToKafkaMapper(new FieldNameBasedTupleToKafkaMapper<>());
        TopologyBuilder topology = new TopologyBuilder();
        topology.setSpout("in", new KafkaSpout<>(spout), 2);
        topology.setBolt("out", bolt, 2).shuffleGrouping("in");
        Config config = new Config();
        config.setNumAckers(1);
        LocalCluster cluster = new LocalCluster();
        cluster.submitTopology("relay", config, topology.createTopology());
        Thread.currentThread().join();
    }
}
