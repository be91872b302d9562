package org.apache.kafka.streams.integration.utils;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.server.util.MockTime;
import tidelog.judges.LaunchedCluster;

/**
 * Takes the place of the class of this name in Kafka's test jar, which runs brokers inside the tests' JVM: the methods that
 * tests call, for nodes that are processes. It comes first on the class path.
 */
public class EmbeddedKafkaCluster {
    private static final Duration LIMIT = Duration.ofSeconds(60);

    /** Where tests take timestamps from; nodes have a real clock. */
    public final MockTime time;
    private final LaunchedCluster nodes;

    public EmbeddedKafkaCluster(int brokers) {
        this(brokers, new Properties());
    }

    public EmbeddedKafkaCluster(int brokers, Properties settings) {
        this(brokers, settings, Map.of());
    }

    public EmbeddedKafkaCluster(int brokers, Properties settings, Map<Integer, Map<String, String>> settingsOfOne) {
        this(brokers, settings, settingsOfOne, System.currentTimeMillis(), System.nanoTime());
    }

    public EmbeddedKafkaCluster(
        int brokers, Properties settings, Map<Integer, Map<String, String>> settingsOfOne, long startMs, long startNs
    ) {
        Map<String, String> all = settingsThatTestsRelyOn();
        settings.forEach((name, value) -> all.put(String.valueOf(name), String.valueOf(value)));
        nodes = new LaunchedCluster(brokers, all, settingsOfOne);
        time = new MockTime(startMs, startNs);
    }

    private static Map<String, String> settingsThatTestsRelyOn() {
        Map<String, String> settings = new HashMap<>();
        for (String prefix : List.of("offsets.topic", "transaction.state.log")) {
            settings.put(prefix + ".num.partitions", "5");
            settings.put(prefix + ".replication.factor", "1");
        }
        settings.put("group.initial.rebalance.delay.ms", "0");
        settings.put("group.min.session.timeout.ms", "0");
        settings.put("group.streams.min.session.timeout.ms", "100");
        settings.put("group.streams.min.heartbeat.interval.ms", "100");
        settings.put("auto.create.topics.enable", "true");
        settings.put("delete.topic.enable", "true");
        settings.put("log.cleaner.dedupe.buffer.size", "2097152");
        return settings;
    }

    /** Returns when a record has gone through the cluster to a consumer group: the offsets topic is there, too. */
    public void start() {
        try {
            nodes.start();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        passOneRecord("judge-first-record");
    }

    public void stop() {
        nodes.stop();
    }

    public String bootstrapServers() {
        return nodes.addresses();
    }

    public Admin createAdminClient() {
        return Admin.create(Map.of("bootstrap.servers", bootstrapServers()));
    }

    public void createTopic(String name) {
        createTopic(name, 1);
    }

    public void createTopic(String name, int partitions) {
        createTopic(name, partitions, 1);
    }

    /** A topic that exists is left as it is. */
    public void createTopic(String name, int partitions, int replicas) {
        asAdmin(admin -> {
            NewTopic topic = new NewTopic(name, Optional.of(partitions), Optional.of((short) replicas));
            settled(admin.createTopics(List.of(topic)).all(), TopicExistsException.class);
            until(LIMIT, "topic " + name + " to be listed", () -> topics(admin, false).contains(name));
            return null;
        });
    }

    public void createTopics(String... names) {
        for (String name : names) createTopic(name);
    }

    public void deleteTopic(String name) {
        deleteTopics(name);
    }

    /** Topics that do not exist are none to delete. */
    public void deleteTopics(String... names) {
        asAdmin(admin -> {
            admin.deleteTopics(List.of(names)).topicNameValues().values()
                .forEach(deleted -> settled(deleted, UnknownTopicOrPartitionException.class));
            return null;
        });
    }

    /** All but those of the cluster itself. */
    public void deleteAllTopics() {
        deleteTopics(asAdmin(admin -> topics(admin, false)).toArray(String[]::new));
    }

    /** The names, internal ones included. */
    public Set<String> getAllTopicsInCluster() {
        return asAdmin(admin -> topics(admin, true));
    }

    public void waitForRemainingTopics(long limitMs, String... names) {
        Set<String> wanted = Set.of(names);
        until(Duration.ofMillis(limitMs), "topics to be " + wanted, () -> getAllTopicsInCluster().equals(wanted));
    }

    /** The settings that the topic has itself. */
    public Properties getLogConfig(String topic) {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        Collection<ConfigEntry> entries =
            asAdmin(admin -> settled(admin.describeConfigs(List.of(resource)).values().get(resource), null).entries());
        Properties own = new Properties();
        for (ConfigEntry entry : entries)
            if (entry.source() == ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG) own.setProperty(entry.name(), entry.value());
        return own;
    }

    public void setGroupSessionTimeout(String group, int timeoutMs) {
        setGroup(group, "streams.session.timeout.ms", timeoutMs);
    }

    public void setGroupHeartbeatTimeout(String group, int intervalMs) {
        setGroup(group, "streams.heartbeat.interval.ms", intervalMs);
    }

    public void setGroupStandbyReplicas(String group, int replicas) {
        setGroup(group, "streams.num.standby.replicas", replicas);
    }

    public void setGroupStreamsInitialRebalanceDelay(String group, int delayMs) {
        setGroup(group, "streams.initial.rebalance.delay.ms", delayMs);
    }

    private void setGroup(String group, String setting, int value) {
        AlterConfigOp set = new AlterConfigOp(new ConfigEntry(setting, String.valueOf(value)), AlterConfigOp.OpType.SET);
        Map<ConfigResource, Collection<AlterConfigOp>> changes =
            Map.of(new ConfigResource(ConfigResource.Type.GROUP, group), List.of(set));
        asAdmin(admin -> settled(admin.incrementalAlterConfigs(changes).all(), null));
    }

    private void passOneRecord(String name) {
        Map<String, Object> at = Map.of("bootstrap.servers", bootstrapServers());
        Map<String, Object> reading = new HashMap<>(at);
        reading.putAll(Map.of("group.id", name, "auto.offset.reset", "earliest"));
        createTopic(name);
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(at, new StringSerializer(), new StringSerializer())) {
            producer.send(new ProducerRecord<>(name, "a record"));
        }
        try (KafkaConsumer<String, String> consumer =
                 new KafkaConsumer<>(reading, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(name));
            until(LIMIT, "the first record", () -> !consumer.poll(Duration.ofMillis(200)).isEmpty());
        }
        asAdmin(admin -> settled(admin.deleteConsumerGroups(List.of(name)).all(), null));
        deleteTopic(name);
    }

    private <T> T asAdmin(Function<Admin, T> use) {
        try (Admin admin = createAdminClient()) {
            return use.apply(admin);
        }
    }

    private static Set<String> topics(Admin admin, boolean internal) {
        return settled(admin.listTopics(new ListTopicsOptions().listInternal(internal)).names(), null);
    }

    /** The result; null after the one failure that does not matter. */
    private static <T> T settled(KafkaFuture<T> future, Class<? extends Exception> harmless) {
        try {
            return future.get(LIMIT.toSeconds(), TimeUnit.SECONDS);
        } catch (ExecutionException e) {
            if (harmless != null && harmless.isInstance(e.getCause())) return null;
            throw new IllegalStateException(e.getCause());
        } catch (InterruptedException | TimeoutException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void until(Duration limit, String what, Callable<Boolean> reached) {
        long end = System.nanoTime() + limit.toNanos();
        try {
            while (!reached.call()) {
                if (System.nanoTime() > end) throw new AssertionError("waited " + limit + " for " + what);
                Thread.sleep(50);
            }
        } catch (Exception e) {
            throw new IllegalStateException("while waiting for " + what, e);
        }
    }
}
