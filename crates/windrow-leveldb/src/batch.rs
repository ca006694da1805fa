//! Write batches. LevelDB makes them before a database is open, so they are lists of writes until then.

/// One write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Write<'a> {
    /// Sets a value.
    Put(&'a [u8], &'a [u8]),
    /// Removes a key.
    Delete(&'a [u8]),
}

/// Writes in the order in which they were added.
#[derive(Default)]
pub(crate) struct WriteBatch {
    /// The length of the key, and that of the value of a put.
    lengths: Vec<(usize, Option<usize>)>,
    /// Keys and values, one behind the other.
    bytes: Vec<u8>,
    /// The first write that could not be added.
    fault: Option<String>,
}

impl WriteBatch {
    pub(crate) fn add(&mut self, write: Write<'_>) {
        let (key, value) = match write {
            Write::Put(key, value) => (key, Some(value)),
            Write::Delete(key) => (key, None),
        };
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value.unwrap_or_default());
        self.lengths.push((key.len(), value.map(<[u8]>::len)));
    }

    /// Notes that a write could not be added: the function of C has no error, so the commit returns it.
    pub(crate) fn add_fault(&mut self, fault: impl FnOnce() -> String) {
        self.fault.get_or_insert_with(fault);
    }

    pub(crate) fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    pub(crate) fn clear(&mut self) {
        self.lengths.clear();
        self.bytes.clear();
        self.fault = None;
    }

    /// Adds all writes of `other`.
    pub(crate) fn append(&mut self, other: &Self) {
        self.lengths.extend_from_slice(&other.lengths);
        self.bytes.extend_from_slice(&other.bytes);
        if self.fault.is_none() {
            self.fault.clone_from(&other.fault);
        }
    }

    /// Adds all its own writes once more.
    pub(crate) fn append_itself(&mut self) {
        self.lengths.extend_from_within(..);
        self.bytes.extend_from_within(..);
    }

    pub(crate) fn writes(&self) -> impl Iterator<Item = Write<'_>> {
        let mut rest = &self.bytes[..];
        self.lengths.iter().map(move |&(key_length, value_length)| {
            let (key, behind) = rest.split_at(key_length);
            let (value, behind) = behind.split_at(value_length.unwrap_or_default());
            rest = behind;
            match value_length {
                Some(_) => Write::Put(key, value),
                None => Write::Delete(key),
            }
        })
    }
}
