//! Describes an external table: one that was written outside of a database, so no manifest describes it.
//!
//! Its checksums have the file number 0, since its number in a database is not known when it is written, and its segment
//! has a random id. So its blocks are bound to their file as firmly as others, and any database can take the file as it
//! is. Its entries are unnumbered, and no range tombstone is among them.
//!
//! Invariant: what is returned agrees with footer and properties. The entries are not looked at.
//!
//! Concurrency: none; the file does not change.

use crate::base::key::UNNUMBERED;
use crate::base::{Error, FileNumber, Result};
use crate::block::stored::{Place, verify};
use crate::codec::Compression;
use crate::codec::reader::DecodeError;
use crate::vfs::{File, read_exact_at};

use super::format::{
    EXTERNAL_FILE, EXTERNAL_SEGMENTS, FOOTER_BYTES, FenceKeys, FileMeta, Footer, Handle,
    Properties, SegmentMeta, SegmentReferences,
};

/// Far more than the block with the properties of a table has: two keys, and some hundred bytes. Nothing vouches for the
/// length before the block is read.
const PROPERTIES_BYTES_MAX: u64 = 1 << 20;

/// Describes `file`, called `name`, as table file `number`.
///
/// # Errors
/// `InvalidArgument` if the file is no external table; `Corruption` if its footer or its properties are damaged;
/// `Unsupported` if it is of a newer format; `Io`.
pub(crate) fn read_external(file: &dyn File, name: &str, number: FileNumber) -> Result<FileMeta> {
    let length = file.length();
    let length = length.map_err(|error| Error::read(name, 0, error))?;
    let footer_bytes = FOOTER_BYTES as u64;
    let offset = length
        .checked_sub(footer_bytes)
        .ok_or_else(|| no_table(name))?;
    let read = |handle: Handle| {
        let bytes = usize::try_from(handle.length);
        let mut bytes = vec![0; bytes.map_err(|_| no_table(name))?];
        read_exact_at(file, &mut bytes, handle.offset)
            .map_err(|error| Error::read(name, handle.offset, error))?;
        Ok::<_, Error>(bytes)
    };
    let stored = read(Handle {
        offset,
        length: footer_bytes,
    })?;
    let id = Footer::claimed_segment(&stored).filter(|_| Footer::begins(&stored));
    let id = id.ok_or_else(|| no_table(name))?;
    if id.0 < EXTERNAL_SEGMENTS {
        return Err(Error::invalid_argument(format!(
            "{name} belongs to a database: only what a table writer has made can be ingested"
        )));
    }
    let place = |offset: u64| Place {
        file: EXTERNAL_FILE,
        segment: id,
        offset,
    };
    let damaged = |offset: u64| move |error: DecodeError| error.in_file(name, offset);
    let (footer, footer_checksum) =
        Footer::read(&stored, place(offset)).map_err(damaged(offset))?;
    let at = footer.properties;
    if at.length > PROPERTIES_BYTES_MAX {
        return Err(no_table(name));
    }
    let stored = read(at)?;
    let properties = verify(&stored, place(at.offset)).and_then(|(codec, payload)| match codec {
        Compression::None => Properties::decode(payload),
        _ => Err(DecodeError::damaged(
            0,
            "only data blocks may be compressed",
        )),
    });
    let properties = properties.map_err(damaged(at.offset))?;
    let expiring = properties.expiring.as_ref().map_or(0, |it| it.entries);
    let is_sound = footer.segment_offset == 0
        && footer.previous.is_none()
        && (properties.sequence_min, properties.sequence_max) == (UNNUMBERED, UNNUMBERED)
        && properties.transient.is_none()
        && properties.logs.is_none()
        && properties.ranges.is_none()
        && properties.operands == 0
        && properties.entries > 0
        && properties
            .tombstones
            .checked_add(expiring)
            .is_some_and(|gone| gone <= properties.entries)
        && properties.smallest <= properties.largest
        && !properties.smallest.is_empty();
    if !is_sound {
        let what = "an external table has what only a database writes";
        return Err(Error::corruption(name, at.offset, what));
    }
    let segment = SegmentMeta {
        id,
        offset: 0,
        length,
        entries: properties.entries,
        tombstones: properties.tombstones,
        keys: FenceKeys::new(&properties.smallest, &properties.largest),
        sequence_min: UNNUMBERED,
        sequence_max: UNNUMBERED,
        logical_bytes: properties.logical_bytes,
        overwrites: 0,
        filter_units: footer.filters.map(|unit| unit.length),
        footer_checksum,
        range_tombstones: 0,
        operands: 0,
        hidden_below: 0,
        expiring: properties.expiring,
        references: SegmentReferences::new(None, None),
    };
    Ok(FileMeta {
        number,
        sealed: true,
        external: true,
        segments: vec![segment].into(),
    })
}

fn no_table(name: &str) -> Error {
    Error::invalid_argument(format!("{name} is not a whole table file"))
}
