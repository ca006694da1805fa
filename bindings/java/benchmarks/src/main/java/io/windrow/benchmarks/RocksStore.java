package io.windrow.benchmarks;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.BloomFilter;
import org.rocksdb.CompressionType;
import org.rocksdb.FlushOptions;
import org.rocksdb.LRUCache;
import org.rocksdb.Options;
import org.rocksdb.ReadOptions;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;
import org.rocksdb.RocksIterator;
import org.rocksdb.WriteBatch;
import org.rocksdb.WriteOptions;

/** RocksDB with the sizes, filters and compression that Windrow has by default. All data fits into its cache. */
final class RocksStore implements Store {
    static {
        RocksDB.loadLibrary();
    }

    private final LRUCache cache = new LRUCache(256 << 20);
    private final Options options = new Options();
    private final WriteOptions writes = new WriteOptions();
    private final ReadOptions reads = new ReadOptions();
    private final RocksDB database;

    RocksStore(Path folder) throws RocksDBException {
        options.setCreateIfMissing(true)
                .setCompressionType(CompressionType.NO_COMPRESSION)
                .setWriteBufferSize(64 << 20)
                .setMaxBackgroundJobs(2)
                .setTableFormatConfig(new BlockBasedTableConfig().setBlockCache(cache).setFilterPolicy(new BloomFilter(10)));
        database = RocksDB.open(options, folder.toString());
    }

    @Override
    public byte[] get(byte[] key) throws RocksDBException {
        return database.get(reads, key);
    }

    @Override
    public int get(ByteBuffer key, ByteBuffer value) throws RocksDBException {
        return database.get(reads, key, value);
    }

    @Override
    public void put(byte[] key, byte[] value) throws RocksDBException {
        database.put(writes, key, value);
    }

    @Override
    public void put(ByteBuffer key, ByteBuffer value) throws RocksDBException {
        database.put(writes, key, value);
    }

    @Override
    public void batch(byte[][] keys, byte[] value) throws RocksDBException {
        try (WriteBatch batch = new WriteBatch()) {
            for (byte[] key : keys) {
                batch.put(key, value);
            }
            database.write(writes, batch);
        }
    }

    @Override
    public long scan(byte[] start, int entries) {
        long bytes = 0;
        try (RocksIterator found = database.newIterator(reads)) {
            found.seek(start);
            for (int i = 0; i < entries && found.isValid(); i++) {
                bytes += found.key().length + found.value().length;
                found.next();
            }
        }
        return bytes;
    }

    @Override
    public void settle() throws RocksDBException {
        try (FlushOptions flush = new FlushOptions().setWaitForFlush(true)) {
            database.flush(flush);
        }
        database.compactRange();
    }

    @Override
    public void close() {
        database.close();
        reads.close();
        writes.close();
        options.close();
        cache.close();
    }
}
