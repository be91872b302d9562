import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import org.apache.kafka.connect.cli.ConnectStandalone;

/** Kafka Connect with two connectors: the topic in becomes a file, and the file the topic out, until it is killed. Arguments: bootstrap, folder. */
public class Relay {
    public static void main(String[] args) throws Exception {
        Path folder = Paths.get(args[1]);
        String lines = folder.resolve("lines").toString();
        String worker = write(folder, "worker",
            "bootstrap.servers=" + args[0],
            "key.converter=org.apache.kafka.connect.storage.StringConverter",
            "value.converter=org.apache.kafka.connect.storage.StringConverter",
            "offset.storage.file.filename=" + folder.resolve("offsets"),
            "offset.flush.interval.ms=500",
            "listeners=http://127.0.0.1:0",
            "plugin.discovery=service_load");
        String sink = write(folder, "sink",
            "name=to-file",
            "connector.class=org.apache.kafka.connect.file.FileStreamSinkConnector",
            "tasks.max=1",
            "consumer.override.auto.offset.reset=earliest",
            "topics=in",
            "file=" + lines);
        String source = write(folder, "source",
            "name=from-file",
            "connector.class=org.apache.kafka.connect.file.FileStreamSourceConnector",
            "tasks.max=1",
            "topic=out",
            "file=" + lines);
        ConnectStandalone.main(new String[] {worker, sink, source});
    }

    private static String write(Path folder, String name, String... lines) throws Exception {
        Path file = folder.resolve(name + ".properties");
        Files.write(file, (String.join("\n", lines) + "\n").getBytes());
        return file.toString();
    }
}
