package io.windrow.kafka.streams.endtoend;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The arguments of a program: name=value, each with a default. */
final class Arguments {
    private final Map<String, String> values = new LinkedHashMap<>();

    /** {@code defaults} names all that there are. */
    Arguments(String[] given, String... defaults) {
        for (String argument : defaults) {
            values.put(argument.substring(0, argument.indexOf('=')), argument.substring(argument.indexOf('=') + 1));
        }
        for (String argument : given) {
            int end = argument.indexOf('=');
            if (end < 0 || !values.containsKey(argument.substring(0, end))) {
                throw new IllegalArgumentException("not an argument: " + argument + "; there are " + values);
            }
            values.put(argument.substring(0, end), argument.substring(end + 1));
        }
    }

    String text(String name) {
        return values.get(name);
    }

    int number(String name) {
        return Integer.parseInt(values.get(name));
    }

    /** All of them, as a program takes them. */
    List<String> all() {
        List<String> all = new ArrayList<>();
        values.forEach((name, value) -> all.add(name + "=" + value));
        return all;
    }

    @Override
    public String toString() {
        return String.join(" ", all());
    }
}
