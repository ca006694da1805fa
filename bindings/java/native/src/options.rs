//! Options of Java callers, as an array of names and values, with the objects among them.
//!
//! Concurrency: no state.

use std::sync::Arc;

use jni::Env;
use jni::objects::JObjectArray;
use windrow::{Error, KeyspaceOptions, MergeOperator, Options, Result, operators};
use windrow_ffi::settings::{self, Setting};

use crate::errors::Outcome;
use crate::filters::Filter;
use crate::operators::Operator;
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

/// The options of a database.
///
/// A name that begins with `keyspace.` is one of the options of new keyspaces. One with `merge_operator.` has the name of the
/// ready operator of a keyspace. One with `merge_function.` or `compaction_filter.` has the name of an object of the caller:
/// `objects` has them in the same order.
pub(crate) fn options(
    env: &mut Env<'_>,
    packed: &[u8],
    objects: &JObjectArray<'_>,
) -> Outcome<Options> {
    let mut from = Reader::new(packed);
    let mut options = Options::default();
    let mut taken = 0;
    while !from.is_empty() {
        let name = from.text()?;
        let value = setting(&mut from)?;
        match (name.split_once('.'), value) {
            (Some(("keyspace", name)), _) => {
                set_of_keyspace(&mut options.keyspace, name, value)?;
            }
            (Some(("merge_operator", keyspace)), Setting::Word(operator)) => {
                options = options.with_merge_operator(keyspace, ready_operator(operator)?);
            }
            (Some(("merge_function", keyspace)), Setting::Word(name)) => {
                let object = objects.get_element(env, taken)?;
                let operator = Operator::new(env, name, &object)?;
                options = options.with_merge_operator(keyspace, Arc::new(operator));
                taken += 1;
            }
            (Some(("compaction_filter", keyspace)), Setting::Word(name)) => {
                let object = objects.get_element(env, taken)?;
                let filter = Filter::new(env, name, &object)?;
                options = options.with_compaction_filter(keyspace, Arc::new(filter));
                taken += 1;
            }
            _ => settings::set(&mut options, name, value)?,
        }
    }
    Ok(options)
}

fn ready_operator(name: &str) -> Result<Arc<dyn MergeOperator>> {
    operators::by_name(name)
        .ok_or_else(|| Error::invalid_argument(format!("there is no merge operator \"{name}\"")))
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
