//! Options of Java callers, as an array of names and values.
//!
//! Concurrency: no state.

use windrow::{Error, KeyspaceOptions, Options, Result, operators};
use windrow_ffi::settings::{self, Setting};

use crate::packed::Reader;

/// What a value is; the numbers are those of the class `Settings`.
fn setting<'a>(from: &mut Reader<'a>) -> Result<Setting<'a>> {
    Ok(match from.byte()? {
        0 => Setting::Flag(from.byte()? != 0),
        1 => {
            let number = from.long()?;
            let number = u64::try_from(number)
                .map_err(|_| Error::invalid_argument(format!("{number} is negative")))?;
            Setting::Whole(number)
        }
        2 => Setting::Real(f64::from_bits(from.long()?.cast_unsigned())),
        3 => Setting::Word(from.text()?),
        _ => return Err(Error::invalid_argument("there is no such kind of values")),
    })
}

/// The options of a database. A name that begins with `keyspace.` is one of the options of new keyspaces, one with
/// `merge_operator.` has the name of the operator of a keyspace.
pub(crate) fn options(packed: &[u8]) -> Result<Options> {
    let mut from = Reader::new(packed);
    let mut options = Options::default();
    while !from.is_empty() {
        let name = from.text()?;
        let value = setting(&mut from)?;
        if let Some(name) = name.strip_prefix("keyspace.") {
            set_of_keyspace(&mut options.keyspace, name, value)?;
        } else if let Some(keyspace) = name.strip_prefix("merge_operator.") {
            let Setting::Word(operator) = value else {
                return Err(Error::invalid_argument("a merge operator has a name"));
            };
            let found = operators::by_name(operator).ok_or_else(|| {
                Error::invalid_argument(format!("there is no merge operator \"{operator}\""))
            })?;
            options = options.with_merge_operator(keyspace, found);
        } else {
            settings::set(&mut options, name, value)?;
        }
    }
    Ok(options)
}

/// The options `base`, with those of the array over them.
pub(crate) fn keyspace_options(
    mut base: KeyspaceOptions,
    packed: &[u8],
) -> Result<KeyspaceOptions> {
    let mut from = Reader::new(packed);
    while !from.is_empty() {
        let name = from.text()?;
        let value = setting(&mut from)?;
        set_of_keyspace(&mut base, name, value)?;
    }
    Ok(base)
}

fn set_of_keyspace(options: &mut KeyspaceOptions, name: &str, value: Setting<'_>) -> Result<()> {
    match (name, value) {
        ("preset", Setting::Word(preset)) => {
            *options = settings::preset(preset)?;
            Ok(())
        }
        _ => settings::set_of_keyspace(options, name, value),
    }
}
