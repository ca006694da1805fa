//! The objects of backups in an object store.
//!
//! An object of less than a part is one request. A longer one is sent in parts, of which one is in memory, and is there when
//! the store has put them together. Parts of a process that is killed stay, unseen, until a rule of the store removes them.
//!
//! - I1. Just before a request that changes what a list shows, this process has the lock.
//! - I2. After such a request has failed nothing is changed, and the lock stays: it may still reach the store, and would meet what
//!   a later call, or the next process, relies on. The put of a piece is no such request: its name comes from its bytes.
//! - I3. An object of less than a part whose name does not come from its bytes is put only if there is none. So a request that
//!   arrives late, of a process that had the lock before, does not change an object that this process has put.
//!
//! Concurrency: one process writes. Readers take no lock.

use futures_util::{StreamExt as _, stream};
use object_store::{
    Error as Failure, MultipartUpload, ObjectStoreExt as _, PutMode, Result as Attempt,
};
use windrow::backup::{BackupStore, ByteSource, StoredObject};
use windrow::{Error, ErrorKind, Result};

use crate::bucket::Bucket;
use crate::download::Download;
use crate::lock::{self, Lock};

/// The bytes of a part. Stores want at least 5 MiB, the same of all parts but the last one, and at most 10,000 parts.
const PART_BYTES: usize = 8 << 20;

/// A part begins with a buffer of this length, which grows.
const READ_BYTES: usize = 256 << 10;

/// `DeleteObjects` of S3 takes no more, and so a request stays short.
const DELETED_AT_ONCE: usize = 1000;

const NAME_BYTES_MAX: usize = 80;

/// The puts of one object that must be new. The client itself repeats none of them: it cannot know what is there.
const PUTS_MAX: usize = 3;

/// The backups below a prefix of an object store.
///
/// A call returns `Poisoned` if the lock was lost, or an earlier change has failed. After a failed change the drop does not give
/// the lock back, because the request may still reach the store: [`unlock`](Self::unlock) the store when that is over, and open it
/// again.
#[derive(Debug)]
pub struct BucketStore {
    bucket: Bucket,
    /// `None` if it is open for reading.
    lock: Option<Lock>,
}

impl BucketStore {
    /// Opens the backups for writing, and takes the lock, which the drop gives back. It stays if the process is killed, if the
    /// store does not answer at the drop, or after a failed change: see [`unlock`](Self::unlock). Messages name the `owner`, for
    /// example a service and its host.
    ///
    /// # Errors
    /// `Locked` while somebody has the lock; `Unsupported` if the store cannot create an object on the condition that there
    /// is none; `Io`.
    pub fn open(bucket: &Bucket, owner: &str) -> Result<Self> {
        let lock = Lock::take(bucket.clone(), owner)?;
        Ok(Self {
            bucket: bucket.clone(),
            lock: Some(lock),
        })
    }

    /// Opens the backups to list, check and restore them. Makes no request and takes no lock: what a purge by another process
    /// removes meanwhile is an error of what is read.
    pub fn open_read_only(bucket: &Bucket) -> Self {
        Self {
            bucket: bucket.clone(),
            lock: None,
        }
    }

    /// Removes the lock of a process that is gone, and returns its owner; `None` if there is no lock. A process that is not gone
    /// after all notices it before its next change.
    ///
    /// Wait until no request of that process can reach the store any more: [the limit](Bucket::with_time_limit) of a request, and
    /// what a network and a store may hold one back, some minutes in all. A late removal could take a piece away that a new backup
    /// relies on; a list and a `verify` show such a backup. A service that is the only writer may unlock before each open, if that
    /// much time is between its processes, or if it verifies.
    ///
    /// # Errors
    /// `Io`.
    pub fn unlock(bucket: &Bucket) -> Result<Option<String>> {
        Lock::remove(bucket)
    }

    /// Sees that this process may change the store.
    fn check_writable(&self) -> Result<()> {
        let Some(lock) = &self.lock else {
            let message = format!("the backups in {} are open for reading only", self.bucket);
            return Err(Error::new(ErrorKind::ReadOnly, message));
        };
        let reason = if lock.is_kept() {
            "the outcome of a failed change is unknown".to_owned()
        } else if let Some(holder) = lock.other_holder()? {
            format!("the lock was removed, or taken by {holder:?}")
        } else {
            return Ok(());
        };
        let message = format!(
            "{reason}, so the backups in {} are changed only after they have been unlocked and opened again",
            self.bucket
        );
        Err(Error::new(ErrorKind::Poisoned, message))
    }

    /// The end of a change of the object `name`, with what it means for later ones (I2).
    fn changed(&self, operation: &str, name: &str, outcome: Attempt<()>) -> Result<()> {
        let Err(failure) = outcome else { return Ok(()) };
        if !is_piece(name) {
            self.lock.iter().for_each(Lock::keep);
        }
        Err(self.bucket.failed(operation, name, &failure))
    }

    /// Puts a small object unless there is one of this name with other bytes (I3).
    fn put_new(&self, name: &str, content: &[u8]) -> Result<()> {
        let mut puts = 0;
        loop {
            let put = self.bucket.put(name, content.to_vec(), PutMode::Create);
            puts += 1;
            if put.is_ok() {
                return Ok(());
            }
            // The put may have reached the store although its answer has not come back.
            match self.bucket.get(name) {
                Ok(found) if found == content => return Ok(()),
                Ok(_) => {
                    let message = format!(
                        "cannot put {name} in {}: another process has put one with other bytes",
                        self.bucket
                    );
                    return Err(Error::new(ErrorKind::Io, message));
                }
                Err(Failure::NotFound { .. }) if puts < PUTS_MAX => self.check_writable()?,
                Err(_) => return self.changed("put", name, put),
            }
        }
    }

    fn put_in_parts(&self, name: &str, first: Vec<u8>, content: &mut dyn ByteSource) -> Result<()> {
        let path = self.bucket.path(name);
        let mut upload = self
            .bucket
            .request(|objects| async move { objects.put_multipart(&path).await })
            .map_err(|failure| self.bucket.failed("put", name, &failure))?;
        let sent = self.send(name, &mut *upload, first, content);
        if let Err(error) = sent.and_then(|()| self.check_writable()) {
            // What this cannot remove, a rule of the store does.
            drop(self.bucket.request(|_| async move { upload.abort().await }));
            return Err(error);
        }
        let completed = self
            .bucket
            .request(|_| async move { upload.complete().await });
        self.changed("put", name, completed.map(drop))
    }

    /// Sends `part` and the rest of `content`.
    fn send(
        &self,
        name: &str,
        upload: &mut dyn MultipartUpload,
        mut part: Vec<u8>,
        content: &mut dyn ByteSource,
    ) -> Result<()> {
        while !part.is_empty() {
            let sending = upload.put_part(part.into());
            self.bucket
                .request(|_| sending)
                .map_err(|failure| self.bucket.failed("put", name, &failure))?;
            part = next_part(content)?;
        }
        Ok(())
    }
}

/// Whether the name of an object comes from its bytes.
fn is_piece(name: &str) -> bool {
    name.rsplit_once('.')
        .is_some_and(|(_, extension)| extension == "piece")
}

impl BackupStore for BucketStore {
    fn put(&self, name: &str, content: &mut dyn ByteSource) -> Result<()> {
        check_name(name)?;
        let first = next_part(content)?;
        self.check_writable()?;
        if first.len() == PART_BYTES {
            return self.put_in_parts(name, first, content);
        }
        if !is_piece(name) {
            return self.put_new(name, &first);
        }
        let put = self.bucket.put(name, first, PutMode::Overwrite);
        self.changed("put", name, put)
    }

    fn get(&self, name: &str) -> Result<Box<dyn ByteSource + '_>> {
        check_name(name)?;
        match Download::begin(&self.bucket, name) {
            Ok(download) => Ok(Box::new(download)),
            Err(failure) => Err(self.bucket.failed("get", name, &failure)),
        }
    }

    fn list(&self) -> Result<Vec<StoredObject>> {
        let prefix = self.bucket.prefix.clone();
        let listed = self
            .bucket
            .request(|objects| async move { objects.list_with_delimiter(Some(&prefix)).await })
            .map_err(|failure| self.bucket.failed("list", "objects", &failure))?;
        let objects = listed.objects.into_iter().filter_map(|object| {
            let name = object.location.filename()?.to_owned();
            let length = object.size;
            is_name(&name).then_some(StoredObject { name, length })
        });
        Ok(objects.collect())
    }

    fn delete(&self, names: &[String]) -> Result<()> {
        names.iter().try_for_each(|name| check_name(name))?;
        for names in names.chunks(DELETED_AT_ONCE) {
            self.check_writable()?;
            let paths: Vec<_> = names
                .iter()
                .map(|name| Ok(self.bucket.path(name)))
                .collect();
            let deleted = self.bucket.request(|objects| async move {
                let mut deleted = objects.delete_stream(stream::iter(paths).boxed());
                while let Some(outcome) = deleted.next().await {
                    match outcome {
                        Ok(_) | Err(Failure::NotFound { .. }) => {}
                        Err(failure) => return Err(failure),
                    }
                }
                Ok(())
            });
            self.changed("delete", &format!("{} objects", names.len()), deleted)?;
        }
        Ok(())
    }
}

/// Whether `name` can be that of an object of a backup.
fn is_name(name: &str) -> bool {
    let is_simple = |byte: u8| byte.is_ascii_alphanumeric() || b".-".contains(&byte);
    (1..=NAME_BYTES_MAX).contains(&name.len())
        && name.bytes().all(is_simple)
        && ![".", "..", lock::NAME].contains(&name)
}

fn check_name(name: &str) -> Result<()> {
    if is_name(name) {
        return Ok(());
    }
    let message = format!("{name:?} is no name of an object of a backup");
    Err(Error::invalid_argument(message))
}

/// The next bytes of `content`, as many as a part has, or fewer at its end.
fn next_part(content: &mut dyn ByteSource) -> Result<Vec<u8>> {
    let mut part = vec![0; READ_BYTES];
    let mut length = 0;
    while length < PART_BYTES {
        if length == part.len() {
            part.resize((2 * length).min(PART_BYTES), 0);
        }
        match content.read(&mut part[length..])? {
            0 => break,
            count => length += count,
        }
    }
    part.truncate(length);
    Ok(part)
}
