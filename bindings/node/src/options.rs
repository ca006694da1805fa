//! Options of an open.
//!
//! Concurrency: no state.

use std::collections::HashMap;

use napi::bindgen_prelude::Either3;
use napi_derive::napi;
use windrow::{Db, KeyspaceOptions, Options, Result};
use windrow_ffi::leveldb::{Entries, KEYSPACE};
use windrow_ffi::settings::{self, Setting};

/// Options by their names in Rust.
type Settings = HashMap<String, Either3<bool, f64, String>>;

/// The options of an open.
#[napi(object, object_to_js = false)]
pub(crate) struct OpenOptions {
    /// Whether other opens of this process with the flag share the database.
    pub multithreading: bool,
    /// Those of the database.
    pub database: Settings,
    /// Those of its keyspace.
    pub keyspace: Settings,
}

/// The largest number below which a double has all whole numbers.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

fn set_all(given: &Settings, mut set: impl FnMut(&str, Setting<'_>) -> Result<()>) -> Result<()> {
    for (name, value) in given {
        let setting = match value {
            Either3::A(flag) => Setting::Flag(*flag),
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "it is a whole number in range"
            )]
            Either3::B(number) if number.fract() == 0.0 && (0.0..WHOLE_MAX).contains(number) => {
                Setting::Whole(*number as u64)
            }
            Either3::B(number) => Setting::Real(*number),
            Either3::C(word) => Setting::Word(word),
        };
        set(name, setting)?;
    }
    Ok(())
}

impl OpenOptions {
    /// The options of the database.
    pub(crate) fn to_windrow(&self) -> Result<Options> {
        let mut options = Options::default();
        set_all(&self.database, |name, value| {
            settings::set(&mut options, name, value)
        })?;
        options.keyspace = self.of_keyspace(options.keyspace.clone())?;
        Ok(options)
    }

    /// The options of the keyspace: those of the preset that is named, or `base`, and the others over it.
    fn of_keyspace(&self, base: KeyspaceOptions) -> Result<KeyspaceOptions> {
        let mut options = base;
        if let Some(Either3::C(preset)) = self.keyspace.get("preset") {
            options = settings::preset(preset)?;
        }
        set_all(&self.keyspace, |name, value| match name {
            "preset" => Ok(()),
            _ => settings::set_of_keyspace(&mut options, name, value),
        })?;
        Ok(options)
    }

    /// The entries of the keyspace, whose options these are from now on. Options that are not named stay.
    pub(crate) fn open_entries(&self, db: Db) -> Result<Entries> {
        let keyspace = match db.existing_keyspace(KEYSPACE)? {
            Some(keyspace) if !self.keyspace.is_empty() => {
                let options = self.of_keyspace(keyspace.options())?;
                db.keyspace_with(KEYSPACE, options)?
            }
            Some(keyspace) => keyspace,
            None => db.keyspace(KEYSPACE)?,
        };
        Entries::new(db, keyspace)
    }
}
