import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Apache Kafka's clients against a cluster: topics, records, groups, a transaction, and a share group with a dead-letter queue.
 * Prints what it saw, the same lines for each cluster that does the same. Arguments: bootstrap, replicas, partitions. */
public class DeadLetters {
    private static String bootstrap;

    private static Map<String, Object> settings(String... more) {
        Map<String, Object> settings = new HashMap<>(Map.of("bootstrap.servers", bootstrap, "metadata.cluster.check.enable", "true"));
        for (int i = 0; i < more.length; i += 2) settings.put(more[i], more[i + 1]);
        return settings;
    }

    private static void set(Admin admin, ConfigResource.Type type, String name, String... pairs) throws Exception {
        Collection<AlterConfigOp> ops = new ArrayList<>();
        for (int i = 0; i < pairs.length; i += 2)
            ops.add(new AlterConfigOp(new ConfigEntry(pairs[i], pairs[i + 1]), AlterConfigOp.OpType.SET));
        admin.incrementalAlterConfigs(Map.of(new ConfigResource(type, name), ops)).all().get();
    }

    private static List<ConsumerRecord<String, String>> read(KafkaConsumer<String, String> consumer, int count) {
        List<ConsumerRecord<String, String>> found = new ArrayList<>();
        long until = System.currentTimeMillis() + 60_000;
        while (found.size() < count && System.currentTimeMillis() < until)
            consumer.poll(Duration.ofMillis(200)).forEach(found::add);
        return found;
    }

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        short replicas = Short.parseShort(arguments[1]);
        int partitions = Integer.parseInt(arguments[2]);
        StringDeserializer text = new StringDeserializer();
        try (Admin admin = Admin.create(settings())) {
            FeatureUpdate raise = new FeatureUpdate((short) 2, FeatureUpdate.UpgradeType.UPGRADE);
            admin.updateFeatures(Map.of("share.version", raise), new UpdateFeaturesOptions()).all().get();
            admin.createTopics(List.of(new NewTopic("jobs", partitions, replicas), new NewTopic("dlq.jobs", 1, replicas)
                .configs(Map.of("errors.deadletterqueue.group.enable", "true")))).all().get();
            set(admin, ConfigResource.Type.GROUP, "workers", "share.auto.offset.reset", "earliest", "share.delivery.count.limit", "2",
                "errors.deadletterqueue.topic.name", "dlq.jobs", "errors.deadletterqueue.copy.record.enable", "true");
        }
        int jobs = 6;
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings("transactional.id", "x"), new StringSerializer(),
                new StringSerializer())) {
            producer.initTransactions();
            producer.beginTransaction();
            for (int job = 0; job < jobs; job++)
                for (int partition = 0; partition < partitions; partition++)
                    producer.send(new ProducerRecord<>("jobs", partition, "key" + job, "job" + job));
            producer.sendOffsetsToTransaction(Map.of(new TopicPartition("jobs", 0), new OffsetAndMetadata(1)),
                new org.apache.kafka.clients.consumer.ConsumerGroupMetadata("outside"));
            producer.commitTransaction();
        }
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings("group.id", "readers", "group.protocol", "consumer",
                "auto.offset.reset", "earliest", "isolation.level", "read_committed"), text, text)) {
            consumer.subscribe(List.of("jobs"));
            System.out.println("read " + read(consumer, jobs * partitions).size() / partitions);
            consumer.commitSync();
        }
        Map<String, Integer> deliveries = new TreeMap<>();
        try (KafkaShareConsumer<String, String> worker = new KafkaShareConsumer<>(settings("group.id", "workers",
                "share.acknowledgement.mode", "explicit"), text, text)) {
            worker.subscribe(Set.of("jobs"));
            long until = System.currentTimeMillis() + 60_000;
            int wanted = (jobs + 1) * partitions;
            for (int seen = 0; seen < wanted && System.currentTimeMillis() < until; ) {
                for (ConsumerRecord<String, String> record : worker.poll(Duration.ofMillis(200))) {
                    seen++;
                    deliveries.merge(record.value(), 1, Integer::sum);
                    boolean rejected = record.value().equals("job1");
                    boolean failed = record.value().equals("job3");
                    worker.acknowledge(record, rejected ? AcknowledgeType.REJECT : failed ? AcknowledgeType.RELEASE : AcknowledgeType.ACCEPT);
                }
                worker.commitSync();
            }
        }
        deliveries.forEach((value, count) -> System.out.println("delivered " + value + " " + count / partitions));
        List<String> letters = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings("group.id", "letters", "group.protocol", "consumer",
                "auto.offset.reset", "earliest"), text, text)) {
            consumer.subscribe(List.of("dlq.jobs"));
            for (ConsumerRecord<String, String> record : read(consumer, 2 * partitions)) {
                StringBuilder line = new StringBuilder("letter " + record.key() + " " + record.value());
                for (Header header : record.headers())
                    line.append(" ").append(header.key().replace("__dlq.errors.", "")).append("=").append(new String(header.value()));
                letters.add(line.toString());
            }
        }
        letters.stream().sorted().forEach(System.out::println);
        try (Admin admin = Admin.create(settings())) {
            System.out.println("groups " + new java.util.TreeSet<>(admin.listGroups().all().get().stream().map(each -> each.groupId() + ":"
                + each.type().map(Object::toString).orElse("")).toList()));
            System.out.println("outside " + admin.listConsumerGroupOffsets("outside").partitionsToOffsetAndMetadata().get().values().size());
            admin.deleteConsumerGroups(List.of("readers", "letters", "outside")).all().get();
            FeatureUpdate lower = new FeatureUpdate((short) 1, FeatureUpdate.UpgradeType.SAFE_DOWNGRADE);
            admin.updateFeatures(Map.of("share.version", lower), new UpdateFeaturesOptions()).all().get();
            System.out.println("done");
        }
    }
}
