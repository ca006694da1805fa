package io.windrow;

import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;

/** Options by the names of the native library. */
final class Settings {
    // What a value is, as the native library knows it.
    private static final int FLAG = 0;
    private static final int WHOLE = 1;
    private static final int REAL = 2;
    private static final int WORD = 3;

    private final Map<String, Object> values = new LinkedHashMap<>();

    void set(String name, Object value) {
        values.put(name, Objects.requireNonNull(value, name));
    }

    void setAll(String prefix, Settings others) {
        others.values.forEach((name, value) -> values.put(prefix + name, value));
    }

    void remove(String name) {
        values.remove(name);
    }

    /** Sets an option to an object of the caller, which the native library calls. */
    void setObject(String option, String name, Object object) {
        values.put(option, new Named(Objects.requireNonNull(name, "name"), object));
    }

    /** The objects, in the order of their options. */
    Object[] objects() {
        return values.values().stream()
                .filter(Named.class::isInstance)
                .map(value -> ((Named) value).object)
                .toArray();
    }

    /** An object, and its name for the native library. */
    private record Named(String name, Object object) {
        @Override
        public String toString() {
            return name;
        }
    }

    Object get(String name) {
        return values.get(name);
    }

    byte[] packed() {
        Packed packed = new Packed(256);
        values.forEach((name, value) -> {
            packed.addText(name);
            if (value instanceof Boolean flag) {
                packed.add(FLAG).add(flag ? 1 : 0);
            } else if (value instanceof Long number) {
                packed.add(WHOLE).addLong(number);
            } else if (value instanceof Double number) {
                packed.add(REAL).addLong(Double.doubleToRawLongBits(number));
            } else if (value instanceof Duration duration) {
                double seconds = duration.getSeconds() + duration.getNano() / 1e9;
                packed.add(REAL).addLong(Double.doubleToRawLongBits(seconds));
            } else {
                packed.add(WORD).addText(value.toString());
            }
        });
        return packed.toArray();
    }
}
