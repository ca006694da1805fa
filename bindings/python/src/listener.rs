//! Events for Python. The threads of the engine leave them in a queue, and a thread of its own passes them to a function: so
//! no call of the engine waits for the interpreter's lock, and the function may make all calls.
//!
//! Concurrency: any thread leaves events. The thread ends when no database has the queue any more.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use pyo3::prelude::*;
use windrow::{Event, EventListener};

use crate::conversions::json;

/// The end of the queue at which events are left.
struct Queue(Sender<serde_json::Result<String>>);

impl EventListener for Queue {
    fn on_event(&self, event: &Event) {
        // Nobody takes events after the end of the interpreter.
        drop(self.0.send(serde_json::to_string(event)));
    }
}

/// Begins to pass events to `listener`, as dictionaries. An exception of it goes to `sys.unraisablehook`.
pub(crate) fn listen(listener: Bound<'_, PyAny>) -> PyResult<Arc<dyn EventListener>> {
    let listener = listener.unbind();
    let (sender, receiver) = channel();
    let pass = move || {
        for text in receiver {
            let passed = Python::try_attach(|py| {
                let listener = listener.bind(py);
                let outcome = json(py, &text).and_then(|event| listener.call1((event,)));
                if let Err(error) = outcome {
                    error.write_unraisable(py, Some(listener));
                }
            });
            if passed.is_none() {
                break;
            }
        }
        let _: Option<()> = Python::try_attach(|_| drop(listener));
    };
    thread::Builder::new()
        .name("windrow-events".to_owned())
        .spawn(pass)?;
    Ok(Arc::new(Queue(sender)))
}
