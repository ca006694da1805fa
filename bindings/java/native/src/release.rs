//! The end of handles.
//!
//! Concurrency: any thread. The Java side calls it once for each handle, when no call has it.

use jni::sys::jlong;
use windrow::{
    Consumer, Db, Error, ErrorKind, Keyspace, PendingPersist, Secondary, Snapshot, View,
};

use crate::changes::SharedChanges;
use crate::cursors::SharedCursor;
use crate::events::Events;
use crate::handles::{free, method};
use crate::loads::Load;
use crate::transactions::SharedTransaction;

// The numbers are those of the class `Handle`.
method!(Java_io_windrow_Native_free, _env, kind: i32, address: jlong; (), {
    // What is dropped may panic, and the rest is freed nevertheless.
    let freed = match kind {
        0 => free::<Db>(address),
        1 => free::<Keyspace>(address),
        2 => free::<View>(address),
        3 => free::<Snapshot>(address),
        4 => free::<SharedCursor>(address),
        5 => free::<SharedTransaction>(address),
        6 => free::<Events>(address),
        7 => free::<Load>(address),
        8 => free::<SharedChanges>(address),
        9 => free::<Consumer>(address),
        10 => free::<Secondary>(address),
        11 => free::<PendingPersist>(address),
        _ => Err(format!("there is no kind {kind} of handles")),
    };
    freed.map_err(|message| Error::new(ErrorKind::InvalidArgument, message).into())
});
