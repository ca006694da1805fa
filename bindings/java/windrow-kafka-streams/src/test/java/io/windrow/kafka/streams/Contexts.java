package io.windrow.kafka.streams;

import java.io.File;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.internals.ProcessorRecordContext;
import org.apache.kafka.test.InternalMockProcessorContext;
import org.apache.kafka.test.StreamsTestUtils;

/** A task whose stores are in a folder. */
final class Contexts {
    /** As an interval of persists it is so long that no moment of a test is one. */
    static final String A_YEAR = "31536000000";

    private Contexts() {}

    static InternalMockProcessorContext<Object, Object> in(File folder) {
        return in(folder, Map.of());
    }

    /** With these settings. */
    static InternalMockProcessorContext<Object, Object> in(File folder, Map<String, ?> settings) {
        return of(folder, new TaskId(0, 0), "mock-changelog", settings);
    }

    /** The thread that keeps global stores. */
    static InternalMockProcessorContext<Object, Object> global(File folder) {
        return of(folder, new TaskId(-1, -1), "mock-changelog", Map.of());
    }

    /** A task whose stores have no changelog. */
    static InternalMockProcessorContext<Object, Object> withoutChangelog(File folder) {
        return of(folder, new TaskId(0, 0), null, Map.of());
    }

    private static InternalMockProcessorContext<Object, Object> of(
            File folder, TaskId task, String changelog, Map<String, ?> settings) {
        Properties properties = StreamsTestUtils.getStreamsConfig();
        properties.putAll(settings);
        StreamsConfig configuration = new StreamsConfig(properties);
        InternalMockProcessorContext<Object, Object> context =
                new InternalMockProcessorContext<>(folder, Serdes.Bytes(), Serdes.ByteArray(), configuration) {
                    @Override
                    public TaskId taskId() {
                        return task;
                    }

                    @Override
                    public String changelogFor(String store) {
                        return changelog;
                    }
                };
        process(context, 0);
        return context;
    }

    /** The task processes the record of its input with this offset. */
    static void process(InternalMockProcessorContext<Object, Object> context, long offset) {
        context.setRecordContext(new ProcessorRecordContext(0, offset, 0, "input", new RecordHeaders()));
    }

    static Bytes key(String text) {
        return Bytes.wrap(text.getBytes(java.nio.charset.StandardCharsets.ISO_8859_1));
    }
}
