import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.hadoop.fs.Path;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * The topic in becomes files in HDFS with three datanodes, and what HDFS then holds becomes the topic out.
 * Arguments: bootstrap, folder, how many records. With a fourth one, "serve", only the file system is started: its address is printed.
 */
public class Relay {
    public static void main(String[] args) throws Exception {
        Configuration config = new Configuration();
        config.set(MiniDFSCluster.HDFS_MINIDFS_BASEDIR, args[1]);
        config.set("dfs.replication", "2");
        MiniDFSCluster cluster = new MiniDFSCluster.Builder(config).numDataNodes(2).build();
        cluster.waitActive();
        if (args.length > 3) {
            System.out.println("serving " + cluster.getURI());
            System.out.flush();
            Thread.currentThread().join();
        }
        FileSystem hdfs = cluster.getFileSystem();
        int expected = Integer.parseInt(args[2]);
        Path folder = new Path("/landed");
        land(args[0], hdfs, folder, expected);
        Map<String, Object> settings = Map.of("bootstrap.servers", args[0], "acks", "all");
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (String line : lines(hdfs, folder)) {
                producer.send(new ProducerRecord<>("out", line));
            }
        }
        System.out.println("read back " + hdfs.getContentSummary(folder).getFileCount() + " files");
        System.out.flush();
        Thread.currentThread().join();
    }

    private static void land(String bootstrap, FileSystem hdfs, Path folder, int expected) throws Exception {
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", bootstrap, "group.id", "relay", "auto.offset.reset", "earliest", "enable.auto.commit", "false");
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of("in"));
            int landed = 0;
            for (int file = 0; landed < expected; file++) {
                List<String> lines = new ArrayList<>();
                while (lines.isEmpty()) {
                    for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofSeconds(1))) {
                        lines.add(record.value());
                    }
                }
                try (FSDataOutputStream out = hdfs.create(new Path(folder, "part-" + file))) {
                    for (String line : lines) {
                        out.write((line + "\n").getBytes(StandardCharsets.UTF_8));
                    }
                    out.hsync();
                }
                landed += lines.size();
                consumer.commitSync();
            }
        }
    }

    private static List<String> lines(FileSystem hdfs, Path folder) throws Exception {
        List<String> lines = new ArrayList<>();
        for (var status : hdfs.listStatus(folder)) {
            try (BufferedReader reader = new BufferedReader(new InputStreamReader(hdfs.open(status.getPath()), StandardCharsets.UTF_8))) {
                reader.lines().forEach(lines::add);
            }
        }
        return lines;
    }
}
