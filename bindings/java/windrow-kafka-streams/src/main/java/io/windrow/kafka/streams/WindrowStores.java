package io.windrow.kafka.streams;

import java.time.Duration;
import java.util.Objects;
import org.apache.kafka.streams.DslStoreFormat;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.VersionedBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;

/**
 * Stores for {@code Materialized.as} and the builders of {@code Stores}, one by one. {@link WindrowStoreSuppliers} makes them
 * the stores of a whole application.
 */
public final class WindrowStores {
    private WindrowStores() {}

    /** A key-value store, for {@code Stores.keyValueStoreBuilder}. */
    public static KeyValueBytesStoreSupplier keyValueStore(String name) {
        return KeyValueSupplier.of(name, DslStoreFormat.PLAIN);
    }

    /** A key-value store whose values have timestamps, for {@code Materialized.as} and {@code timestampedKeyValueStoreBuilder}. */
    public static KeyValueBytesStoreSupplier timestampedKeyValueStore(String name) {
        return KeyValueSupplier.of(name, DslStoreFormat.TIMESTAMPED);
    }

    /** A key-value store whose values have timestamps and headers. */
    public static KeyValueBytesStoreSupplier keyValueStoreWithHeaders(String name) {
        return KeyValueSupplier.of(name, DslStoreFormat.HEADERS);
    }

    /**
     * A versioned store, for {@code Materialized.as} and {@code versionedKeyValueStoreBuilder}. A version stays for the
     * retention after another one has followed it, and a write that is later than that is dropped.
     */
    public static VersionedBytesStoreSupplier versionedKeyValueStore(String name, Duration historyRetention) {
        Objects.requireNonNull(name, "name cannot be null");
        return new VersionedSupplier(name, milliseconds(historyRetention, "historyRetention"));
    }

    /** A store of windows, for {@code Stores.windowStoreBuilder}. */
    public static WindowBytesStoreSupplier windowStore(
            String name, Duration retention, Duration windowSize, boolean retainDuplicates) {
        return windowStore(name, retention, windowSize, retainDuplicates, false, DslStoreFormat.PLAIN);
    }

    /** A store of windows whose values have timestamps, for {@code Materialized.as} and {@code timestampedWindowStoreBuilder}. */
    public static WindowBytesStoreSupplier timestampedWindowStore(
            String name, Duration retention, Duration windowSize, boolean retainDuplicates) {
        return windowStore(name, retention, windowSize, retainDuplicates, false, DslStoreFormat.TIMESTAMPED);
    }

    /** A store of windows whose values have timestamps and headers. */
    public static WindowBytesStoreSupplier windowStoreWithHeaders(
            String name, Duration retention, Duration windowSize, boolean retainDuplicates) {
        return windowStore(name, retention, windowSize, retainDuplicates, false, DslStoreFormat.HEADERS);
    }

    /** A store of sessions. */
    public static SessionBytesStoreSupplier sessionStore(String name, Duration retention) {
        return sessionStore(name, retention, false, false);
    }

    /** A store of sessions whose values have headers. */
    public static SessionBytesStoreSupplier sessionStoreWithHeaders(String name, Duration retention) {
        return sessionStore(name, retention, false, true);
    }

    /** A store by time also has the order of times: for results that come when a window closes. */
    static WindowBytesStoreSupplier windowStore(
            String name,
            Duration retention,
            Duration windowSize,
            boolean retainDuplicates,
            boolean isByTime,
            DslStoreFormat format) {
        Objects.requireNonNull(name, "name cannot be null");
        long retentionMs = milliseconds(retention, "retentionPeriod");
        long windowMs = milliseconds(windowSize, "windowSize");
        if (windowMs > retentionMs) {
            throw new IllegalArgumentException("The retention period of the window store " + name
                    + " must be no smaller than its window size. Got size=[" + windowMs + "], retention=[" + retentionMs + "]");
        }
        return WindowSupplier.of(new WindowParameters(name, retentionMs, windowMs, retainDuplicates, isByTime), format);
    }

    static SessionBytesStoreSupplier sessionStore(String name, Duration retention, boolean isByTime, boolean hasHeaders) {
        Objects.requireNonNull(name, "name cannot be null");
        long retentionMs = milliseconds(retention, "retentionPeriod");
        return SessionSupplier.of(name, retentionMs, isByTime, hasHeaders);
    }

    private static long milliseconds(Duration duration, String name) {
        Objects.requireNonNull(duration, name + " cannot be null");
        if (duration.isNegative()) {
            throw new IllegalArgumentException(name + " cannot be negative");
        }
        return duration.toMillis();
    }
}
