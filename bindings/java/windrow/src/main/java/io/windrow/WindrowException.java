package io.windrow;

import java.util.Optional;
import java.util.OptionalLong;

/** An error of Windrow: a code, a sentence, and what it is about. */
public final class WindrowException extends RuntimeException {
    private static final long serialVersionUID = 1;

    private final ErrorCode code;
    private final String file;
    private final long offset;
    private final String keyspace;
    private final byte[] key;

    WindrowException(ErrorCode code, String message) {
        this(code.ordinal(), message, null, -1, null, null);
    }

    /** Called by the native library. */
    WindrowException(int code, String message, String file, long offset, String keyspace, byte[] key) {
        super(message);
        this.code = ErrorCode.of(code);
        this.file = file;
        this.offset = offset;
        this.keyspace = keyspace;
        this.key = key;
    }

    /** What the caller can do. */
    public ErrorCode code() {
        return code;
    }

    /** The file that the error is about. */
    public Optional<String> file() {
        return Optional.ofNullable(file);
    }

    /** The offset in bytes of the damage, or of the failed read, in {@link #file}. */
    public OptionalLong offset() {
        return offset < 0 ? OptionalLong.empty() : OptionalLong.of(offset);
    }

    /** The keyspace of a conflict, a deadlock, or a lock that was not free in time. */
    public Optional<String> keyspace() {
        return Optional.ofNullable(keyspace);
    }

    /** The key of a conflict, a deadlock, or a lock that was not free in time. */
    public Optional<byte[]> key() {
        return Optional.ofNullable(key).map(byte[]::clone);
    }
}
