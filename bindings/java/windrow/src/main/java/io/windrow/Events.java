package io.windrow;

import java.util.List;
import java.util.function.Consumer;

/** Passes the events of a database to a listener, in a thread that ends when nothing of the database is left. */
final class Events {
    private final Handle handle = new Handle(Handle.EVENTS, Native.events(), "queue of events", null);
    private final Consumer<Event> listener;

    private Events(Consumer<Event> listener) {
        this.listener = listener;
        handle.closeWith(this);
    }

    /** Opens something with these options, and passes its events if they have a listener. Returns its address. */
    static long during(Options options, Opening opening) {
        byte[] settings = options.settings.packed();
        Object[] objects = options.settings.objects();
        if (options.listener == null) {
            return opening.open(settings, objects, 0);
        }
        Events events = new Events(options.listener);
        events.begin();
        long queue = events.handle.enter();
        try {
            return opening.open(settings, objects, queue);
        } catch (Throwable failure) {
            Native.endEvents(queue);
            throw failure;
        } finally {
            events.handle.leave(events);
        }
    }

    /** An open with the options of a caller, as the native library has them. */
    interface Opening {
        long open(byte[] settings, Object[] objects, long events);
    }

    private void begin() {
        Thread thread = new Thread(this::pass, "windrow-events");
        thread.setDaemon(true);
        thread.start();
    }

    private void pass() {
        long events = handle.enter();
        try {
            for (byte[] next; (next = Native.nextEvent(events)) != null; ) {
                List<String> event = Unpacked.texts(next);
                pass(new Event(event.get(0), event.get(1)));
            }
        } finally {
            handle.leave(this);
            handle.close();
        }
    }

    /** What the listener throws goes where exceptions of threads go that nobody catches. */
    private void pass(Event event) {
        try {
            listener.accept(event);
        } catch (Throwable thrown) {
            Thread thread = Thread.currentThread();
            thread.getUncaughtExceptionHandler().uncaughtException(thread, thrown);
        }
    }
}
