package io.windrow.kafka.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.Test;

class PersistTimesTest {
    private static final long SECOND = Duration.ofSeconds(1).toNanos();

    @Test
    void eachIntervalHasOneMoment() {
        for (long start : new long[] {-3 * SECOND, 0, Long.MAX_VALUE / 2}) {
            PersistTimes times = new PersistTimes(Duration.ofSeconds(10), "store");
            long first = times.after(start);
            assertTrue(first > start && first <= start + 10 * SECOND);
            assertEquals(first, times.after(first - 1));
            assertEquals(first + 10 * SECOND, times.after(first));
            assertEquals(first + 10 * SECOND, times.after(first + 7 * SECOND));
        }
    }

    @Test
    void withoutAnIntervalEachMomentIsOne() {
        assertEquals(17, new PersistTimes(Duration.ZERO, "store").after(17));
    }

    @Test
    void theLongestIntervalIsNever() {
        Duration interval = Settings.of(Map.of(Settings.PERSIST_INTERVAL, Long.MAX_VALUE)).persistInterval();
        PersistTimes times = new PersistTimes(interval, "store");
        for (long now : new long[] {Long.MIN_VALUE / 4, -1, 0, Long.MAX_VALUE / 4}) {
            assertTrue(times.after(now) - now > 0);
        }
    }

    /** The names are as Kafka makes them. */
    @Test
    void storesOfManyTasksAreSpread() {
        int[] inSecond = new int[10];
        for (int task = 0; task < 4; task++) {
            for (int store = 0; store < 10; store++) {
                String name = "/state/application/0_" + task + "/windrow/KSTREAM-AGGREGATE-STATE-STORE-00000000" + (10 + 2 * store);
                inSecond[(int) (new PersistTimes(Duration.ofSeconds(10), name).after(0) / SECOND) % 10]++;
            }
        }
        for (int stores : inSecond) {
            assertTrue(stores >= 1 && stores <= 8, "a second has " + stores + " of 40 stores");
        }
    }
}
