package io.windrow.kafka.streams;

/**
 * What a database must know of its store.
 *
 * @param name of the store
 * @param format what the values are; entries of another format are not used
 * @param interval of the segments of a store that is new, in milliseconds; 0 if it has none
 * @param isLogged whether the store has a changelog, from which it can be restored
 * @param isGlobal whether all instances of the application have all of it. Kafka knows no unknown offset of such a store
 */
record StoreKind(String name, String format, long interval, boolean isLogged, boolean isGlobal) {}
