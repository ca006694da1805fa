package io.windrow.kafka.streams.endtoend;

import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.TimeWindows;

/**
 * What the application computes. {@code counts} counts events by key, by window and by session, and joins a table of the last
 * events with that of the counts: five stores. {@code all} does that, and
 *
 * <ul>
 *   <li>joins a table of orders with a table of customers by a foreign key; that of customers has its input as its changelog;
 *   <li>joins each event with the orders of the same key that are near it in time;
 *   <li>asks a versioned store what a key was some time ago.
 * </ul>
 *
 * <p>There may be several copies of the whole, and the keys of what a copy writes begin with its number.
 */
final class Topologies {
    static final String EVENTS = "events";
    static final String ORDERS = "orders";
    static final String CUSTOMERS = "customers";
    static final String COUNTS = "counts";
    static final String WINDOWS = "windows";
    static final String SESSIONS = "sessions";
    static final String JOINED = "joined";
    static final String FOREIGN = "foreign";
    static final String PAIRS = "pairs";
    static final String VERSIONS = "versions";
    static final Duration WINDOW = Duration.ofSeconds(10);
    static final Duration GAP = Duration.ofSeconds(5);
    static final Duration NEAR = Duration.ofMillis(500);
    private static final Duration GRACE = Duration.ofMinutes(1);
    /** Two streams are not read in the order of their times, above all after a restart. */
    private static final Duration GRACE_OF_STREAMS = Duration.ofHours(1);

    private final StreamsBuilder builder = new StreamsBuilder();

    private Topologies() {}

    /** The settings of the application say that an input of a table serves as its changelog. */
    static Topology of(String name, int copies, Properties settings) {
        Topologies topology = new Topologies();
        KStream<String, String> events = topology.builder.stream(EVENTS);
        for (int copy = 0; copy < copies; copy++) {
            topology.count(copy, events);
        }
        if (name.equals("all")) {
            KStream<String, String> orders = topology.builder.stream(ORDERS);
            KTable<String, String> customers = topology.builder.table(CUSTOMERS);
            for (int copy = 0; copy < copies; copy++) {
                topology.join(copy, events, orders, customers);
            }
            // The last one that gets an event.
            events.process(Pause::new);
        }
        return topology.builder.build(settings);
    }

    private void count(int copy, KStream<String, String> events) {
        KGroupedStream<String, String> groups = events.groupByKey();
        KTable<String, Long> counts = groups.count();
        to(COUNTS, copy, counts.toStream());
        to(WINDOWS, copy, groups.windowedBy(TimeWindows.ofSizeAndGrace(WINDOW, GRACE)).count().toStream()
                .map((key, count) -> KeyValue.pair(key.key() + "@" + key.window().start(), count)));
        to(SESSIONS, copy, groups.windowedBy(SessionWindows.ofInactivityGapAndGrace(GAP, GRACE)).count().toStream()
                .map((key, count) -> KeyValue.pair(key.key() + "@" + key.window().start() + "-" + key.window().end(), count)));
        KTable<String, String> last = events.toTable();
        to(JOINED, copy, last.join(counts, (value, count) -> value + " of " + count).toStream());
    }

    private void join(int copy, KStream<String, String> events, KStream<String, String> orders, KTable<String, String> customers) {
        KTable<String, String> left = orders.toTable();
        to(FOREIGN, copy, left.join(customers, Topologies::customer, (order, customer) -> order + " for " + customer).toStream());
        KStream<String, String> pairs = events.join(
                orders, Topologies::pair, JoinWindows.ofTimeDifferenceAndGrace(NEAR, GRACE_OF_STREAMS));
        to(PAIRS, copy, pairs.map((key, pair) -> KeyValue.pair(pair, "1")));
        to(VERSIONS, copy, Versions.of(builder, events, "versions-" + copy));
    }

    /** The customer of an order. */
    static String customer(String order) {
        return order.substring(0, order.indexOf('|'));
    }

    static String pair(String event, String order) {
        return event + " near " + order;
    }

    private static <V> void to(String topic, int copy, KStream<String, V> results) {
        results.map((key, value) -> KeyValue.pair(copy + " " + key, value == null ? null : String.valueOf(value))).to(topic);
    }
}
