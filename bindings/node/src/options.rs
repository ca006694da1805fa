//! Options of an open.
//!
//! Concurrency: no state.

use std::collections::HashMap;

use napi::bindgen_prelude::Either3;
use napi_derive::napi;
use windrow::operators::by_name;
use windrow::{Db, Error, Keyspace, KeyspaceOptions, Options, Result};
use windrow_ffi::leveldb::{Entries, KEYSPACE};
use windrow_ffi::settings::{self, Setting};

/// Options by their names in Rust.
pub(crate) type Settings = HashMap<String, Either3<bool, f64, String>>;

/// The options of an open.
#[napi(object, object_to_js = false)]
pub(crate) struct OpenOptions {
    /// Whether other opens of this process with the flag share the database.
    pub multithreading: bool,
    /// Those of the database.
    pub database: Settings,
    /// Those of its keyspace, and of keyspaces that are created without their own.
    pub keyspace: Settings,
    /// The names of ready operators, by those of keyspaces.
    pub merge_operators: HashMap<String, String>,
}

/// The names of all options of databases.
#[napi]
pub fn option_names() -> Vec<&'static str> {
    settings::names().collect()
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
        options.keyspace = of_keyspace(&self.keyspace, options.keyspace.clone())?;
        for (keyspace, name) in &self.merge_operators {
            let unknown =
                || Error::invalid_argument(format!("there is no merge operator \"{name}\""));
            let operator = by_name(name).ok_or_else(unknown)?;
            options = options.with_merge_operator(keyspace, operator);
        }
        Ok(options)
    }

    /// The entries of the keyspace.
    pub(crate) fn open_entries(&self, db: Db) -> Result<Entries> {
        let keyspace = open_keyspace(&db, KEYSPACE, &self.keyspace)?;
        Entries::new(db, keyspace)
    }
}

/// The options of a keyspace: those of the preset that is named, or `base`, and the others over it.
fn of_keyspace(given: &Settings, base: KeyspaceOptions) -> Result<KeyspaceOptions> {
    let mut options = base;
    if let Some(Either3::C(preset)) = given.get("preset") {
        options = settings::preset(preset)?;
    }
    set_all(given, |name, value| match name {
        "preset" => Ok(()),
        _ => settings::set_of_keyspace(&mut options, name, value),
    })?;
    Ok(options)
}

/// The keyspace `name`, whose options these are from now on. Options that are not named stay. A missing one is created.
pub(crate) fn open_keyspace(db: &Db, name: &str, given: &Settings) -> Result<Keyspace> {
    match db.existing_keyspace(name)? {
        Some(keyspace) if given.is_empty() => Ok(keyspace),
        Some(keyspace) => db.keyspace_with(name, of_keyspace(given, keyspace.options())?),
        None if given.is_empty() => db.keyspace(name),
        None => db.keyspace_with(name, of_keyspace(given, KeyspaceOptions::default())?),
    }
}
