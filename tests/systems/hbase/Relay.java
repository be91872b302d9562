import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseTestingUtility;
import org.apache.hadoop.hbase.StartMiniClusterOption;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.rest.RESTServer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * The topic in becomes rows of a table in a small HBase cluster, a row for each key, and a scan of the table becomes the topic out.
 * Arguments: bootstrap, folder, how many records. With a fourth one, "serve", only the cluster and its REST server are started: their
 * address is printed.
 */
public class Relay {
    private static final byte[] FAMILY = "f".getBytes(StandardCharsets.UTF_8);
    private static final byte[] VALUE = "value".getBytes(StandardCharsets.UTF_8);

    public static void main(String[] args) throws Exception {
        System.setProperty("test.build.data.basedirectory", args[1]);
        HBaseTestingUtility cluster = new HBaseTestingUtility();
        cluster.getConfiguration().setInt("hbase.master.info.port", -1);
        cluster.getConfiguration().setInt("hbase.regionserver.info.port", -1);
        if (args.length > 3) {
            // Regions in files of this machine, without a file system of their own: it is up in a fraction of the time.
            cluster.getConfiguration().set("hbase.rootdir", Path.of(args[1], "root").toUri().toString());
            cluster.getConfiguration().setBoolean("hbase.unsafe.stream.capability.enforce", false);
            cluster.startMiniZKCluster();
            cluster.startMiniHBaseCluster(StartMiniClusterOption.builder().createRootDir(false).build());
            serve(cluster.getConfiguration());
            Thread.currentThread().join();
        }
        cluster.startMiniCluster();
        int expected = Integer.parseInt(args[2]);
        try (Table table = cluster.createTable(TableName.valueOf("landed"), FAMILY)) {
            land(args[0], table, expected);
            Map<String, Object> settings = Map.of("bootstrap.servers", args[0], "acks", "all");
            try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
                    ResultScanner rows = table.getScanner(new Scan().addFamily(FAMILY).setCaching(1000))) {
                for (Result row : rows) {
                    String key = new String(row.getRow(), StandardCharsets.UTF_8);
                    producer.send(new ProducerRecord<>("out", key, new String(row.getValue(FAMILY, VALUE), StandardCharsets.UTF_8)));
                }
            }
        }
        Thread.currentThread().join();
    }

    private static void serve(Configuration config) throws Exception {
        config.set("hbase.rest.host", "127.0.0.1");
        config.setInt("hbase.rest.port", 0);
        config.setInt("hbase.rest.info.port", -1);
        RESTServer rest = new RESTServer(config);
        rest.run();
        System.out.println("serving http://127.0.0.1:" + rest.getPort());
        System.out.flush();
    }

    private static void land(String bootstrap, Table table, int expected) throws Exception {
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", bootstrap, "group.id", "relay", "auto.offset.reset", "earliest", "enable.auto.commit", "false");
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of("in"));
            for (int landed = 0; landed < expected; ) {
                List<Put> puts = new ArrayList<>();
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofSeconds(1))) {
                    puts.add(new Put(record.key().getBytes(StandardCharsets.UTF_8))
                        .addColumn(FAMILY, VALUE, record.value().getBytes(StandardCharsets.UTF_8)));
                }
                table.put(puts);
                landed += puts.size();
                consumer.commitSync();
            }
        }
    }
}
