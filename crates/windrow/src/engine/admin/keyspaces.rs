//! Creating, opening, dropping and renaming keyspaces.
//!
//! Each is one edit of the manifest. A sync of the logs comes first: writes that were acknowledged before survive if the
//! edit does (I2 of the engine). While consumers of changes hold anything, the edit also gets a place in the commit order.
//!
//! One keyspace is hidden: that of prepared transactions. It is created with the first of them, and callers can neither
//! see, open nor change it.
//!
//! Concurrency: `creating` is held over the look for a name, the edit and its installation, so names stay unique.

use std::sync::Arc;

use crate::base::limits::KEYSPACE_NAME_BYTES_MAX;
use crate::base::sync::Shared;
use crate::base::{Error, ErrorKind, KeyspaceId, PREPARED_KEYSPACE, Result};
use crate::engine::jobs::filter_state;
use crate::engine::keyspace::merges_and_expires;
use crate::engine::{Engine, KeyspaceCore};
use crate::manifest::{ChangeEvent, KeyspaceState, ManifestState, Record, Version};
use crate::options::KeyspaceOptions;

impl Engine {
    /// The keyspace of prepared transactions, created if missing.
    pub(in crate::engine) fn prepared_keyspace(&self) -> Result<Arc<KeyspaceCore>> {
        self.open_or_create(PREPARED_KEYSPACE, None)
    }

    /// The keyspace of prepared transactions, if there is one. No name changes meanwhile.
    pub(in crate::engine) fn existing_prepared_keyspace(&self) -> Option<Arc<KeyspaceCore>> {
        self.find_keyspace(PREPARED_KEYSPACE)
    }

    /// The names of all keyspaces of callers, sorted.
    pub(crate) fn keyspace_names(&self) -> Vec<String> {
        let keyspaces = self.keyspaces.load();
        let names = keyspaces.iter().map(|keyspace| keyspace.name().to_string());
        let mut names: Vec<_> = names.filter(|name| !is_hidden(name)).collect();
        names.sort();
        names
    }

    /// The keyspace `name`, created if missing. `options` replace its recorded options.
    pub(crate) fn open_keyspace(
        &self,
        name: &str,
        options: Option<KeyspaceOptions>,
    ) -> Result<Arc<KeyspaceCore>> {
        if let Some(options) = &options {
            options.validate()?;
            // Without writes no memtable fills up.
            if !self.is_read_only() {
                self.options.check_fits(options)?;
            }
        }
        check_name(name)?;
        self.open_or_create(name, options)
    }

    fn open_or_create(
        &self,
        name: &str,
        options: Option<KeyspaceOptions>,
    ) -> Result<Arc<KeyspaceCore>> {
        self.check_open()?;
        let is_as_wanted =
            |core: &Arc<KeyspaceCore>| options.as_ref().is_none_or(|it| *core.options() == *it);
        if let Some(known) = self.find_keyspace(name).filter(is_as_wanted) {
            return Ok(known);
        }
        self.check_may_wait()?;
        let creating = self.begin_creating();
        // A close waits for this lock.
        self.check_open()?;
        let known = self.find_keyspace(name);
        let core = match (known, options) {
            (Some(core), None) => core,
            (Some(core), Some(options)) => {
                self.change_options(&core, options)?;
                core
            }
            (None, _) if self.is_read_only() => return Err(no_keyspace(name)),
            (None, options) => {
                let options = options.unwrap_or_else(|| self.options.keyspace.clone());
                let created = self.create_keyspace(name, &options)?;
                // Before a close may go on.
                self.reserve.grow(0, self.catalog.manifest_bytes());
                drop(creating);
                self.note_reserve();
                return Ok(created);
            }
        };
        drop(creating);
        Ok(core)
    }

    /// Records `options` for a keyspace with other options. A database open for reading ignores them.
    fn change_options(&self, core: &KeyspaceCore, options: KeyspaceOptions) -> Result<()> {
        if *core.options() == options || self.is_read_only() {
            return Ok(());
        }
        self.check_writable()?;
        if options.default_ttl.is_some() {
            core.check_expiring()?;
        }
        let record = Record::KeyspaceOptions {
            keyspace: core.id(),
            options: options.to_recorded(),
        };
        self.catalog
            .commit_in(core, |_| vec![record], |_| core.set_options(options))?;
        self.allocate_filters(core, filter_state::ALL);
        core.refresh_throttle();
        self.signal.notify();
        Ok(())
    }

    fn create_keyspace(&self, name: &str, options: &KeyspaceOptions) -> Result<Arc<KeyspaceCore>> {
        self.check_writable()?;
        // Writes that were acknowledged before this call survive if the new name does. A concurrent write may
        // not.
        self.sync_logs()?;
        let keyspaces = self.keyspaces.load_full();
        let newest = self.catalog.with_state(|state| state.last_keyspace);
        let id = newest.0.checked_add(1).map(KeyspaceId).ok_or_else(|| {
            Error::invalid_argument("there is no number left for another keyspace")
        })?;
        let operator = self.options.merge_operator(name, None)?;
        if options.default_ttl.is_some()
            && let Some(operator) = operator.name()
        {
            return Err(merges_and_expires(name, operator));
        }
        let mut records = vec![
            Record::CreateKeyspace {
                id,
                name: name.to_owned(),
            },
            Record::KeyspaceOptions {
                keyspace: id,
                options: options.to_recorded(),
            },
        ];
        records.extend(operator.name().map(|name| Record::MergeOperator {
            keyspace: id,
            name: name.to_owned(),
        }));
        let event = (!is_hidden(name)).then(|| ChangeEvent::Created {
            keyspace: id,
            name: name.to_owned(),
        });
        self.commit_keyspace_change(records, event, |state| {
            let level_count = state
                .keyspaces
                .get(&id)
                .map_or(1, |keyspace: &KeyspaceState| {
                    usize::from(keyspace.level_count)
                });
            let core = KeyspaceCore::new(
                id,
                name.to_owned(),
                options.clone(),
                operator,
                Version::default(),
                level_count,
                &self.memory,
            );
            let filter = self.options.compaction_filters.of_keyspace(name);
            let core = Arc::new(core.with_compaction_filter(filter));
            let mut all = Vec::clone(&keyspaces);
            all.push(Arc::clone(&core));
            self.keyspaces.store(Shared::new(all));
            core
        })
    }

    /// Drops the keyspace `name`. Its entries and files go after their last user has released them.
    pub(crate) fn drop_keyspace(&self, name: &str) -> Result<()> {
        check_name(name)?;
        self.check_may_wait()?;
        let creating = self.begin_creating();
        self.check_writable()?;
        let core = &self.find_keyspace(name).ok_or_else(|| no_keyspace(name))?;
        let keyspaces = self.keyspaces.load_full();
        // I2 of the engine: writes that were acknowledged before the drop survive, even if the drop does not.
        self.sync_logs()?;
        let dropped = self.with_reserve(|| {
            let event = ChangeEvent::Dropped {
                keyspace: core.id(),
                name: name.to_owned(),
            };
            self.commit_keyspace_change(vec![Record::DropKeyspace(core.id())], Some(event), |_| {
                let others = keyspaces.iter().filter(|other| !Arc::ptr_eq(other, core));
                self.keyspaces.store(Shared::new(others.cloned().collect()));
                core.note_dropped();
            })
        });
        drop(creating);
        self.note_reserve();
        dropped?;
        // Its memtables no longer throttle writers.
        self.refresh_shared_throttle();
        self.signal.notify();
        Ok(())
    }

    /// The keyspace `name`, if it exists.
    pub(crate) fn existing_keyspace(&self, name: &str) -> Result<Option<Arc<KeyspaceCore>>> {
        check_name(name)?;
        self.check_open()?;
        if let Some(known) = self.find_keyspace(name) {
            return Ok(Some(known));
        }
        self.check_may_wait()?;
        let _renaming = self.begin_creating();
        self.check_open()?;
        Ok(self.find_keyspace(name))
    }

    /// The keyspace `name`, if it exists. Without the lock of creations, drops and renames one may be missed that takes its name
    /// from another one now.
    fn find_keyspace(&self, name: &str) -> Option<Arc<KeyspaceCore>> {
        let keyspaces = self.keyspaces.load();
        keyspaces.iter().find(|core| *core.name() == name).cloned()
    }

    /// Gives `keyspace` the name `name`, which no other has.
    pub(crate) fn rename_keyspace(&self, keyspace: &Arc<KeyspaceCore>, name: &str) -> Result<()> {
        check_name(name)?;
        self.check_may_wait()?;
        let renaming = self.begin_creating();
        self.check_writable()?;
        keyspace.check_exists()?;
        match self.find_keyspace(name) {
            Some(known) if Arc::ptr_eq(&known, keyspace) => return Ok(()),
            Some(_) => {
                return Err(Error::new(
                    ErrorKind::AlreadyExists,
                    format!("a keyspace named {name} exists already"),
                ));
            }
            None => {}
        }
        let renamed = self.record_name(keyspace, name, |_| keyspace.set_name(name.to_owned()));
        drop(renaming);
        self.note_reserve();
        renamed
    }

    /// Exchanges the names of two keyspaces.
    pub(crate) fn swap_keyspaces(&self, first: &str, second: &str) -> Result<()> {
        check_name(first)?;
        check_name(second)?;
        self.check_may_wait()?;
        let renaming = self.begin_creating();
        self.check_writable()?;
        let find = |name| self.find_keyspace(name).ok_or_else(|| no_keyspace(name));
        let (one, other) = (find(first)?, find(second)?);
        if Arc::ptr_eq(&one, &other) {
            return Ok(());
        }
        let swapped = self.record_name(&one, second, |_| {
            one.set_name(second.to_owned());
            other.set_name(first.to_owned());
        });
        drop(renaming);
        self.note_reserve();
        swapped
    }

    /// Makes the new name durable, then calls `install`.
    fn record_name(
        &self,
        keyspace: &KeyspaceCore,
        name: &str,
        install: impl Fn(&ManifestState),
    ) -> Result<()> {
        // I2 of the engine: writes that were acknowledged before survive if the new name does.
        self.sync_logs()?;
        let record = Record::RenameKeyspace {
            keyspace: keyspace.id(),
            name: name.to_owned(),
        };
        let event = ChangeEvent::Renamed {
            keyspace: keyspace.id(),
            from: keyspace.name().to_string(),
            to: name.to_owned(),
        };
        self.with_reserve(|| {
            self.commit_keyspace_change(vec![record.clone()], Some(event.clone()), &install)
        })
    }
}

/// Whether callers do not see the keyspace of this name.
pub(in crate::engine) fn is_hidden(name: &str) -> bool {
    name == PREPARED_KEYSPACE
}

fn check_name(name: &str) -> Result<()> {
    if name.is_empty() || name.len() > KEYSPACE_NAME_BYTES_MAX {
        return Err(Error::invalid_argument(format!(
            "a keyspace's name has 1 to {KEYSPACE_NAME_BYTES_MAX} bytes, not {}",
            name.len()
        )));
    }
    if is_hidden(name) {
        return Err(Error::invalid_argument(format!(
            "the keyspace \"{PREPARED_KEYSPACE}\" holds prepared transactions and is not for callers"
        )));
    }
    Ok(())
}

fn no_keyspace(name: &str) -> Error {
    let message = format!("there is no keyspace \"{name}\"");
    Error::new(ErrorKind::NotFound, message)
}
