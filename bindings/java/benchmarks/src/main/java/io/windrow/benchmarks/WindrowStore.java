package io.windrow.benchmarks;

import io.windrow.Batch;
import io.windrow.Database;
import io.windrow.Entries;
import io.windrow.Entry;
import io.windrow.KeyRange;
import io.windrow.Keyspace;
import io.windrow.Options;
import java.nio.ByteBuffer;
import java.nio.file.Path;

final class WindrowStore implements Store {
    private final Database database;
    private final Keyspace keyspace;

    WindrowStore(Path folder) {
        database = Database.open(folder, new Options());
        keyspace = database.keyspace("entries");
    }

    @Override
    public byte[] get(byte[] key) {
        return keyspace.getOrNull(key);
    }

    @Override
    public int get(ByteBuffer key, ByteBuffer value) {
        return keyspace.get(key, value).orElse(-1);
    }

    @Override
    public void put(byte[] key, byte[] value) {
        keyspace.put(key, value);
    }

    @Override
    public void put(ByteBuffer key, ByteBuffer value) {
        keyspace.put(key, value);
    }

    @Override
    public void batch(byte[][] keys, byte[] value) {
        Batch batch = new Batch();
        for (byte[] key : keys) {
            batch.put(keyspace, key, value);
        }
        database.write(batch);
    }

    @Override
    public long scan(byte[] start, int entries) {
        long bytes = 0;
        try (Entries found = keyspace.entries(KeyRange.from(start))) {
            for (int i = 0; i < entries && found.hasNext(); i++) {
                Entry entry = found.next();
                bytes += entry.key().length + entry.value().length;
            }
        }
        return bytes;
    }

    @Override
    public void settle() {
        keyspace.compact(KeyRange.all());
        database.waitIdle();
    }

    @Override
    public void close() {
        database.close();
    }
}
