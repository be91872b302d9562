import com.fasterxml.jackson.databind.ObjectMapper;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.HdrHistogram.ConcurrentHistogram;
import org.HdrHistogram.Histogram;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * The shape of the OpenMessaging benchmark in one process: several producers (acks=all, linger 1 ms) and consumers of one topic.
 *
 * <p>BOOTSTRAP TOPIC PARTITIONS RATE SECONDS WARMUP SIZE CLIENTS BATCH: RATE records a second of all producers together, on a
 * steady schedule; 0 is as many as they can. Half of a record's bytes are random. Consumers read by assignment. Prints "begin" and
 * "end" around what is measured, then one line of JSON. End to end is from the moment a record was due (without a rate: sent)
 * until a consumer has it.
 */
public final class OpenMessaging {
    private static final long LONGEST = 120_000_000_000L;
    private final String bootstrap;
    private final String topic;
    private final int partitions;
    private final long rate;
    private final int size;
    private final int clients;
    private final String batch;
    private final Histogram endToEnd = new ConcurrentHistogram(LONGEST, 3);
    private final AtomicLong acked = new AtomicLong();
    private final AtomicLong failed = new AtomicLong();
    private final AtomicLong consumed = new AtomicLong();
    private final CountDownLatch ready;
    private volatile long from = Long.MAX_VALUE;
    private volatile long until = Long.MAX_VALUE;

    private OpenMessaging(String[] args) {
        bootstrap = args[0];
        topic = args[1];
        partitions = Integer.parseInt(args[2]);
        rate = Long.parseLong(args[3]);
        size = Integer.parseInt(args[6]);
        clients = Integer.parseInt(args[7]);
        batch = args[8];
        ready = new CountDownLatch(2 * clients);
    }

    public static void main(String[] args) throws Exception {
        Map<String, Object> result = new OpenMessaging(args).run(Long.parseLong(args[4]), Long.parseLong(args[5]));
        System.out.println(new ObjectMapper().writeValueAsString(result));
        System.out.flush();
        System.exit(0); // clients are in the middle of something
    }

    private Map<String, Object> run(long seconds, long warmup) throws Exception {
        for (int i = 0; i < clients; i++) {
            int number = i;
            daemon(() -> consume(number));
            daemon(() -> produce(number));
        }
        ready.await();
        Thread.sleep(warmup * 1000);
        long begin = System.nanoTime();
        from = begin;
        long ackedBefore = acked.get();
        long consumedBefore = consumed.get();
        long cpu = cpuNanos();
        say("begin");
        Thread.sleep(seconds * 1000);
        long end = System.nanoTime();
        until = end;
        long ackedAfter = acked.get();
        long consumedAfter = consumed.get();
        cpu = cpuNanos() - cpu;
        say("end");
        if (rate > 0) {
            Thread.sleep(1000); // what is on its way belongs to the measured time
        }
        Map<String, Object> result = new LinkedHashMap<>();
        double took = (end - begin) / 1e9;
        result.put("seconds", took);
        result.put("records", ackedAfter - ackedBefore);
        result.put("records_per_s", (ackedAfter - ackedBefore) / took);
        result.put("mb_per_s", (ackedAfter - ackedBefore) * (double) size / 1048576.0 / took);
        result.put("consumed_per_s", (consumedAfter - consumedBefore) / took);
        result.put("failed", failed.get());
        result.put("client_cpu_s", cpu / 1e9);
        Bench.percentiles(endToEnd, result);
        return result;
    }

    private static long cpuNanos() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }

    private static void say(String word) {
        System.out.println(word);
        System.out.flush();
    }

    private static void daemon(Runnable work) {
        Thread thread = new Thread(work);
        thread.setDaemon(true);
        thread.start();
    }

    private void consume(int number) {
        Properties config = new Properties();
        config.put("bootstrap.servers", bootstrap);
        config.put("enable.auto.commit", "false");
        config.put("max.partition.fetch.bytes", "10485760");
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        List<TopicPartition> mine = new ArrayList<>();
        for (int partition = number; partition < partitions; partition += clients) {
            mine.add(new TopicPartition(topic, partition));
        }
        consumer.assign(mine);
        consumer.seekToEnd(mine);
        mine.forEach(consumer::position);
        ready.countDown();
        while (true) {
            for (ConsumerRecord<byte[], byte[]> one : consumer.poll(Duration.ofSeconds(1))) {
                long due = ByteBuffer.wrap(one.value()).getLong();
                consumed.incrementAndGet();
                if (due >= from && due < until) {
                    endToEnd.recordValue(Math.min(Math.max(System.nanoTime() - due, 0), LONGEST));
                }
            }
        }
    }

    private void produce(int number) {
        Properties config = new Properties();
        config.put("bootstrap.servers", bootstrap);
        config.put("acks", "all");
        config.put("linger.ms", "1");
        config.put("batch.size", batch);
        KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
        producer.partitionsFor(topic);
        byte[] half = new byte[size / 2];
        new Random(number).nextBytes(half);
        ready.countDown();
        try {
            ready.await();
        } catch (InterruptedException e) {
            return;
        }
        long begin = System.nanoTime() + number * 1_000_000_000L / Math.max(1, rate);
        for (long i = 0;; i++) {
            long due = System.nanoTime();
            if (rate > 0) {
                due = begin + i * clients * 1_000_000_000L / rate;
                for (long left = due - System.nanoTime(); left > 0; left = due - System.nanoTime()) {
                    LockSupport.parkNanos(left);
                }
            }
            byte[] value = new byte[size];
            System.arraycopy(half, 0, value, size - half.length, half.length);
            ByteBuffer.wrap(value).putLong(due);
            producer.send(new ProducerRecord<>(topic, value), (done, error) -> (error == null ? acked : failed).incrementAndGet());
        }
    }
}
