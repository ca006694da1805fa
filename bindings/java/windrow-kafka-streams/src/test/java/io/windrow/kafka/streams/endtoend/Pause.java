package io.windrow.kafka.streams.endtoend;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.Record;

/**
 * Keeps a thread waiting behind events that the stores have got already, if that is asked for, until it may go on. It says which
 * thread waits, and what tasks all threads have.
 */
final class Pause implements Processor<String, String, Void, Void> {
    private static final int EVENTS = 20;
    /** How many events come before the pause; none is asked for if it is negative. */
    private static final AtomicInteger LEFT = new AtomicInteger(-1);
    private static volatile Supplier<String> tasks;
    private static volatile CountDownLatch end;

    /** A thread waits after some more events, which are enough for one transaction of several writes. */
    static void request(Supplier<String> tasksOfThreads) {
        tasks = tasksOfThreads;
        end = new CountDownLatch(1);
        LEFT.set(EVENTS);
        System.out.println("will pause");
    }

    /** The thread goes on. */
    static void end() {
        end.countDown();
    }

    @Override
    public void process(Record<String, String> event) {
        if (LEFT.getAndUpdate(it -> Math.max(it - 1, -1)) == 0) {
            System.out.println("pauses " + Thread.currentThread().getName() + " " + tasks.get());
            try {
                end.await();
            } catch (InterruptedException ended) {
                Thread.currentThread().interrupt();
            }
        }
    }
}
