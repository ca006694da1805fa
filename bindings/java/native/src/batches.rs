//! Batches, which the Java side collects as one array.
//!
//! Concurrency: no state.

use jni::Env;
use jni::objects::{JByteArray, JLongArray};
use windrow::{Batch, Error, Keyspace, Result};

use crate::arguments::{Bytes, time_to_live};
use crate::errors::Outcome;
use crate::handles::Handle;
use crate::packed::Reader;

/// The batch that an array describes: each write names its keyspace by its place among `keyspaces`.
pub(crate) fn batch(
    env: &Env<'_>,
    keyspaces: &JLongArray<'_>,
    writes: &JByteArray<'_>,
    length: i32,
) -> Outcome<Batch> {
    let mut addresses = vec![0; keyspaces.len(env)?];
    keyspaces.get_region(env, 0, &mut addresses)?;
    let keyspaces: Vec<_> = addresses
        .into_iter()
        .map(Handle::<Keyspace>::from_array)
        .collect();
    let length = usize::try_from(length)
        .map_err(|_| Error::invalid_argument("the length of the batch is negative"))?;
    let writes = Bytes::of_region(env, writes, 0, length)?;
    Ok(decoded(&keyspaces, &writes)?)
}

// The numbers are those of the class `Batch`.
fn decoded(keyspaces: &[Handle<Keyspace>], writes: &[u8]) -> Result<Batch> {
    let mut from = Reader::new(writes);
    let mut batch = Batch::new();
    while !from.is_empty() {
        let kind = from.byte()?;
        let keyspace = keyspaces
            .get(from.length()?)
            .ok_or_else(|| Error::invalid_argument("the batch does not have this keyspace"))?;
        match kind {
            0 => batch.insert(keyspace, from.bytes()?, from.bytes()?)?,
            1 => batch.remove(keyspace, from.bytes()?)?,
            2 => batch.merge(keyspace, from.bytes()?, from.bytes()?)?,
            3 => {
                let start = bound(&mut from)?;
                let end = bound(&mut from)?;
                let start = start.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Included);
                let end = end.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded);
                batch.delete_range::<&[u8]>(keyspace, (start, end))?;
            }
            4 => {
                let (key, value) = (from.bytes()?, from.bytes()?);
                let ttl = time_to_live(from.long()?)?.unwrap_or_default();
                batch.insert_with_ttl(keyspace, key, value, ttl)?;
            }
            _ => return Err(Error::invalid_argument("there is no such write")),
        }
    }
    Ok(batch)
}

fn bound<'a>(from: &mut Reader<'a>) -> Result<Option<&'a [u8]>> {
    Ok(if from.byte()? == 0 {
        None
    } else {
        Some(from.bytes()?)
    })
}
