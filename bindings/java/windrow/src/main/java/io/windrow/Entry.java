package io.windrow;

/**
 * A key and its value.
 *
 * @param key the bytes of the key
 * @param value the bytes of the value
 */
public record Entry(byte[] key, byte[] value) {}
