package tidelog.judges;

import java.io.IOException;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Stream;
import org.opentest4j.TestAbortedException;

/**
 * A cluster of processes, started and ended by a launcher: a program with the words {@code start DIR}, {@code stop DIR} and,
 * on its last line, the addresses of the brokers 0, 1, 2 ... (tidelog's is compat/launcher). System properties say which one
 * ({@code judge.launcher}), where the nodes live ({@code judge.clusters}) and where their logs are kept ({@code judge.logs}).
 */
public final class LaunchedCluster {
    private final Map<String, String> shape;
    private final Map<String, String> settings;
    private final Map<Integer, Map<String, String>> settingsOfOne;
    private final Thread atExit = new Thread(this::end);
    private Path folder;
    private String addresses;

    public LaunchedCluster(int brokers, Map<String, String> settings, Map<Integer, Map<String, String>> settingsOfOne) {
        this.settings = settings;
        this.settingsOfOne = settingsOfOne;
        shape = Map.of(
            "brokers", String.valueOf(brokers),
            "controllers", "1",
            "disks", "1",
            "combined", "true", // the controller is in broker 0
            "standalone", "false",
            "metadata.version", System.getProperty("judge.metadata.version", "4.3-IV0"),
            "broker.listener", "EXTERNAL",
            "broker.security.protocol", "PLAINTEXT",
            "controller.listener", "CONTROLLER",
            "controller.security.protocol", "PLAINTEXT");
    }

    /** Starts the nodes and returns when all of them serve. The test is skipped when the launcher cannot start such a cluster. */
    public void start() throws IOException {
        folder = Files.createTempDirectory(Path.of(System.getProperty("judge.clusters")), "cluster");
        write("cluster.properties", shape);
        write("server.properties", settings);
        for (Map.Entry<Integer, Map<String, String>> one : settingsOfOne.entrySet())
            write("server." + one.getKey() + ".properties", one.getValue());
        Runtime.getRuntime().addShutdownHook(atExit);
        String answer = launcher("start", folder.toString());
        if (answer.startsWith("unsupported"))
            throw new TestAbortedException(answer);
        addresses = answer;
    }

    /** Bootstrap servers. */
    public String addresses() {
        if (addresses == null)
            throw new IllegalStateException("the cluster does not run");
        return addresses;
    }

    /** Ends all nodes; their logs are kept, their data is not. */
    public void stop() {
        end();
        Runtime.getRuntime().removeShutdownHook(atExit);
    }

    private synchronized void end() {
        if (folder == null)
            return;
        keepLogs();
        launcher("stop", folder.toString());
        folder = null;
        addresses = null;
    }

    private void keepLogs() {
        Path kept = Path.of(System.getProperty("judge.logs"));
        try (Stream<Path> files = Files.list(folder)) {
            for (Path log : files.filter(file -> file.toString().endsWith(".log")).toList())
                Files.copy(log, kept.resolve(folder.getFileName() + "-" + log.getFileName()), StandardCopyOption.REPLACE_EXISTING);
        } catch (IOException e) {
            System.err.println("logs of nodes are lost: " + e);
        }
    }

    private void write(String file, Map<String, String> entries) throws IOException {
        Properties properties = new Properties();
        properties.putAll(entries);
        try (Writer writer = Files.newBufferedWriter(folder.resolve(file))) {
            properties.store(writer, null);
        }
    }

    /** The last line that the launcher prints. */
    private static String launcher(String... words) {
        List<String> command = new ArrayList<>(List.of(System.getProperty("judge.launcher")));
        command.addAll(Arrays.asList(words));
        try {
            Process process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
            String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8).strip();
            if (process.waitFor() != 0)
                throw new IllegalStateException(command + " failed:\n" + said);
            return said.substring(said.lastIndexOf('\n') + 1);
        } catch (IOException | InterruptedException e) {
            throw new IllegalStateException(command + " cannot be run", e);
        }
    }
}
