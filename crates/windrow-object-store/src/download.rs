//! Reads an object in ranges, of which one is in memory. Each is a request of its own, however slowly the bytes are used.
//!
//! Concurrency: a download belongs to one caller.

use object_store::ObjectStoreExt as _;
use windrow::backup::ByteSource;
use windrow::{Error, ErrorKind, Result};

use crate::bucket::Bucket;

const RANGE_BYTES: u64 = 8 << 20;

/// The bytes of an object from its start.
pub(crate) struct Download<'a> {
    bucket: &'a Bucket,
    name: String,
    length: u64,
    /// The end of what was read from the store.
    end: u64,
    /// What was read last, and how much of it is used.
    range: Vec<u8>,
    used: usize,
}

impl<'a> Download<'a> {
    pub(crate) fn begin(bucket: &'a Bucket, name: &str) -> object_store::Result<Self> {
        let path = bucket.path(name);
        let length = bucket.request(|objects| async move { objects.head(&path).await })?;
        Ok(Self {
            bucket,
            name: name.to_owned(),
            length: length.size,
            end: 0,
            range: Vec::new(),
            used: 0,
        })
    }

    fn fetch(&mut self) -> Result<()> {
        let path = self.bucket.path(&self.name);
        let range = self.end..self.length.min(self.end + RANGE_BYTES);
        let wanted = range.clone();
        let bytes = self
            .bucket
            .request(|objects| async move { objects.get_range(&path, wanted).await })
            .map_err(|error| self.bucket.failed("get", &self.name, &error))?;
        self.range = bytes.into();
        self.used = 0;
        if self.range.len() as u64 != range.end - range.start {
            let message = format!("{} has another length in {}", self.name, self.bucket);
            return Err(Error::new(ErrorKind::Io, message));
        }
        self.end = range.end;
        Ok(())
    }
}

impl ByteSource for Download<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if self.used == self.range.len() && self.end < self.length && !buffer.is_empty() {
            self.fetch()?;
        }
        let count = buffer.len().min(self.range.len() - self.used);
        buffer[..count].copy_from_slice(&self.range[self.used..][..count]);
        self.used += count;
        Ok(count)
    }
}
