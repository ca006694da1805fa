package io.windrow.kafka.streams.endtoend;

import io.windrow.kafka.streams.WindrowStores;
import java.time.Duration;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.VersionedRecord;

/** Writes each event to a versioned store, or deletes its key, and says what the key was at another time. */
final class Versions implements Processor<String, String, String, String> {
    static final Duration HISTORY = Duration.ofSeconds(10);
    static final String NONE = "nothing";

    private final String store;
    private ProcessorContext<String, String> context;
    private VersionedKeyValueStore<String, String> versions;

    private Versions(String store) {
        this.store = store;
    }

    static KStream<String, String> of(StreamsBuilder builder, KStream<String, String> events, String store) {
        builder.addStateStore(Stores.versionedKeyValueStoreBuilder(
                WindrowStores.versionedKeyValueStore(store, HISTORY), Serdes.String(), Serdes.String()));
        return events.process(() -> new Versions(store), store);
    }

    static boolean deletes(String event) {
        return event.hashCode() % 10 == 0;
    }

    /** The time that is asked for. */
    static long asked(String event, long time) {
        return time + 2_000 - Math.floorMod(event.hashCode(), 16) * 1_000L;
    }

    @Override
    public void init(ProcessorContext<String, String> context) {
        this.context = context;
        versions = context.getStateStore(store);
    }

    @Override
    public void process(Record<String, String> event) {
        if (deletes(event.value())) {
            versions.delete(event.key(), event.timestamp());
        } else {
            versions.put(event.key(), event.value(), event.timestamp());
        }
        VersionedRecord<String> found = versions.get(event.key(), asked(event.value(), event.timestamp()));
        context.forward(event.withKey(event.value()).withValue(found == null ? NONE : found.value()));
    }
}
