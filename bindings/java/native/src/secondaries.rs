//! Databases that another process writes. Each state that was read is a database of its own.
//!
//! Concurrency: any thread.

use std::time::Duration;

use jni::objects::{JByteArray, JObjectArray};
use jni::sys::jlong;
use windrow::{Db, Error, Secondary};

use crate::arguments::Bytes;
use crate::databases::options_of_open;
use crate::events::Events;
use crate::handles::{Handle, give, method};

method!(Java_io_windrow_Native_openSecondary, env, path: JByteArray<'local>, settings: JByteArray<'local>, objects: JObjectArray<'local>, events: Handle<Events>; jlong, {
    let path = Bytes::new(env, &path)?;
    let options = options_of_open(env, &settings, &objects, &events)?;
    Ok(give::<Secondary>(Db::open_secondary(path.text()?, options)?))
});

// The newest state, after what was committed since was read if the caller wants it.
method!(Java_io_windrow_Native_stateOfSecondary, _env, secondary: Handle<Secondary>, catch_up: bool; jlong, {
    Ok(give::<Db>(if catch_up { secondary.catch_up()? } else { secondary.db() }))
});

method!(Java_io_windrow_Native_follow, _env, secondary: Handle<Secondary>, milliseconds: jlong; (), {
    let interval = u64::try_from(milliseconds).map_err(|_| Error::invalid_argument("an interval is not negative"))?;
    Ok(secondary.follow(Duration::from_millis(interval))?)
});
