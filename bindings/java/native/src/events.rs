//! Events for Java. The threads of the engine leave them in a queue, from which a thread of Java takes them: so no call of the
//! engine waits for Java, and the listener may make all calls.
//!
//! Concurrency: any thread leaves events, and one takes them. The queue ends when no database has it any more.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use jni::objects::JByteArray;
use jni::sys::jlong;
use windrow::{Error, ErrorKind, Event, EventListener};

use crate::handles::{Handle, give, method};
use crate::packed::texts;

/// A queue of events as JSON.
pub(crate) struct Events {
    /// Until a database takes it.
    sender: Mutex<Option<Sender<serde_json::Result<serde_json::Value>>>>,
    receiver: Mutex<Receiver<serde_json::Result<serde_json::Value>>>,
}

/// The end of the queue at which events are left.
struct Queue(Sender<serde_json::Result<serde_json::Value>>);

impl EventListener for Queue {
    fn on_event(&self, event: &Event) {
        // The thread that takes them may have ended.
        drop(self.0.send(serde_json::to_value(event)));
    }
}

impl Events {
    /// What leaves the events of a database in the queue. The queue ends with it.
    pub(crate) fn listener(&self) -> Result<Arc<dyn EventListener>, Error> {
        let sender = self
            .sender
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let sender = sender.ok_or_else(|| Error::invalid_argument("a database has the events"))?;
        Ok(Arc::new(Queue(sender)))
    }
}

method!(Java_io_windrow_Native_events, _env; jlong, {
    let (sender, receiver) = channel();
    Ok(give(Events { sender: Mutex::new(Some(sender)), receiver: Mutex::new(receiver) }))
});

// Ends a queue that no database has taken.
method!(Java_io_windrow_Native_endEvents, _env, events: Handle<Events>; (), {
    drop(events.listener());
    Ok(())
});

// Waits for an event: its name and itself, as JSON. Null at the end of the queue.
method!(Java_io_windrow_Native_nextEvent, env, events: Handle<Events>; JByteArray<'local>, {
    let receiver = events.receiver.lock().unwrap_or_else(PoisonError::into_inner);
    let Ok(event) = receiver.recv() else {
        return Ok(JByteArray::default());
    };
    let event = event.map_err(|error| Error::new(ErrorKind::Io, error.to_string()))?;
    let name = event.get("event").and_then(serde_json::Value::as_str).unwrap_or_default();
    Ok(env.byte_array_from_slice(&texts([name, &event.to_string()])?)?)
});
