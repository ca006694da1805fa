package io.windrow;

import java.time.Instant;

/** An entry about which a {@link CompactionFilter} decides. Its value can be read by the thread of the call, until the call ends. */
public final class Candidate {
    private final byte[] key;
    private final long valueBytes;
    private final long expiry;
    private final Thread thread = Thread.currentThread();
    /** Of the candidate in the native library; 0 after the call. Only the thread of the call uses it. */
    private long address;

    Candidate(byte[] key, long valueBytes, long expiry, long address) {
        this.key = key;
        this.valueBytes = valueBytes;
        this.expiry = expiry;
        this.address = address;
    }

    /** The key. */
    public byte[] key() {
        return key;
    }

    /** The bytes of the value, which are known without a read of it. */
    public long valueBytes() {
        return valueBytes;
    }

    /** The value. One that is in another file is read, which the compaction would not do without the filter. */
    public byte[] value() {
        if (Thread.currentThread() != thread || address == 0) {
            throw new IllegalStateException("the call of the filter has ended, or is in another thread");
        }
        return Native.candidateValue(address);
    }

    /** When the entry expires: {@link Instant#MAX} for never. */
    public Instant expiresAt() {
        return View.expiry(expiry).orElseThrow();
    }

    /** Forgets the candidate in the native library. The thread of the call ends it. */
    void end() {
        address = 0;
    }
}
