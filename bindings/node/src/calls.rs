//! The calls that are made most, as functions instead of methods. A method of napi-rs costs more than a read before it
//! begins: it looks for its object, checks the type, and guards the object until the end. A function has what it needs.
//!
//! Concurrency: as `database`. `getNear` and `getSync` have ended when they return to the thread of JavaScript.

use std::sync::Arc;

use napi::Env;
use napi::bindgen_prelude::{AsyncTask, FunctionCallContext, JsObjectValue, Object, ToNapiValue};
use windrow::Near;

use crate::answers::Value;
use crate::border::{Bytes, Found, made};
use crate::errors::Failure;
use crate::owner::{Lease, Owner};
use crate::work::{Answer, Work, promise, run};

/// A call of a function.
type Call<'a> = FunctionCallContext<'a>;

/// The functions of a database, by their names.
pub(crate) fn functions<'env>(env: &'env Env, owner: &Arc<Owner>) -> napi::Result<Object<'env>> {
    let mut functions = Functions {
        env,
        owner,
        object: Object::new(env)?,
    };
    functions.add("getNear", get_near)?;
    functions.add("getSync", get_sync)?;
    functions.add("get", get)?;
    functions.add("put", put)?;
    functions.add("del", del)?;
    Ok(functions.object)
}

struct Functions<'env, 'owner> {
    env: &'env Env,
    owner: &'owner Arc<Owner>,
    object: Object<'env>,
}

impl Functions<'_, '_> {
    fn add<R: ToNapiValue>(
        &mut self,
        name: &str,
        function: impl Fn(&Arc<Owner>, &Call<'_>) -> napi::Result<R> + 'static,
    ) -> napi::Result<()> {
        let owner = Arc::clone(self.owner);
        let call = move |call: Call<'_>| function(&owner, &call);
        let env = self.env;
        let function = env.create_function_from_closure::<(), R, _>(name, call)?;
        self.object.set_named_property(name, function)
    }
}

/// The value of a key, as an array of bytes or as text: `undefined` if there is none, and `null` if the answer may not be in
/// memory. Arguments: the key, whether the value becomes bytes.
fn get_near(owner: &Arc<Owner>, call: &Call<'_>) -> napi::Result<Found> {
    let (key, as_bytes) = (call.get::<Bytes>(0)?, call.get(1)?);
    let found = run(|| {
        owner.check_open()?;
        owner
            .entries()
            .get_near(&key, |value| made(call.env, value, as_bytes))
    });
    match found {
        Ok(Near::Found(made)) => made.map(Found::Value),
        Ok(Near::Absent) => Ok(Found::Absent),
        Ok(Near::Unknown) => Ok(Found::Unknown),
        Err(failure) => Err(failure.rejection(*call.env)),
    }
}

/// As `getNear`, with a wait for what is not in memory.
fn get_sync(owner: &Arc<Owner>, call: &Call<'_>) -> napi::Result<Found> {
    match get_near(owner, call)? {
        Found::Unknown => {}
        found => return Ok(found),
    }
    let (key, as_bytes) = (call.get::<Bytes>(0)?, call.get(1)?);
    match run(|| owner.entries().get(&key, None)) {
        Ok(Some(value)) => made(call.env, &value, as_bytes).map(Found::Value),
        Ok(None) => Ok(Found::Absent),
        Err(failure) => Err(failure.rejection(*call.env)),
    }
}

/// A promise for what `getSync` gives, in the state at the call.
fn get(owner: &Arc<Owner>, call: &Call<'_>) -> napi::Result<AsyncTask<Work<Value>>> {
    let (key, as_bytes) = (call.get::<Bytes>(0)?, call.get(1)?);
    let snapshot = owner.entries().db().snapshot();
    asynchronous(owner, call, move |entries| {
        let found = entries.get(&key, Some(&snapshot))?;
        Ok(Value::new(found, as_bytes))
    })
}

/// Sets the value of a key. Arguments: key, value, whether the write waits for the device, or nothing.
fn put(owner: &Arc<Owner>, call: &Call<'_>) -> napi::Result<AsyncTask<Work<()>>> {
    let (key, value) = (call.get::<Bytes>(0)?, call.get::<Bytes>(1)?);
    let durability = owner.durability(call.get(2)?);
    asynchronous(owner, call, move |entries| {
        entries.insert(&key, &value, durability)
    })
}

/// Removes a key. Arguments: key, whether the write waits for the device, or nothing.
fn del(owner: &Arc<Owner>, call: &Call<'_>) -> napi::Result<AsyncTask<Work<()>>> {
    let key = call.get::<Bytes>(0)?;
    let durability = owner.durability(call.get(1)?);
    asynchronous(owner, call, move |entries| entries.remove(&key, durability))
}

/// A promise for the outcome of `work`.
fn asynchronous<T: Answer>(
    owner: &Arc<Owner>,
    call: &Call<'_>,
    work: impl Fn(&Lease) -> windrow::Result<T> + Send + 'static,
) -> napi::Result<AsyncTask<Work<T>>> {
    let lease = owner.lease().map_err(|error| failed(call, error))?;
    Ok(promise(move || work(&lease)))
}

/// What a function throws.
fn failed(call: &Call<'_>, error: windrow::Error) -> napi::Error {
    Failure::from(error).rejection(*call.env)
}
