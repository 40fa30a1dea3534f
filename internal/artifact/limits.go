// SPDX-License-Identifier: Apache-2.0

package artifact

// Limits bound what one chart may cost. A field that is zero takes its default.
//
// What they are measured against: Cilium 1.20 has 0.2 MiB compressed, 1.4 MiB
// expanded, 166 files, the largest 0.3 MiB; kube-prometheus-stack with its CRDs
// expands to about 6 MiB.
type Limits struct {
	// ArchiveBytes is the size of an archive as it is stored, compressed.
	// Defaults to 10 MiB, as in Flux's source-controller.
	ArchiveBytes int64
	// TotalBytes is what an archive expands to: what its decompressor yields, up to the
	// end of the last entry, and archives inside it counted in; of a directory,
	// the sum of its files. Defaults to 32 MiB: several times the largest charts,
	// and a third of Helm's 100 MiB, since all of it is held in memory.
	TotalBytes int64
	// FileBytes is the expanded size of one file. Defaults to 5 MiB, from which
	// on Helm's loader refuses it, too.
	FileBytes int64
	// Entries is the number of entries, directories and those of archives inside
	// the archive included. Defaults to 10,000.
	Entries int
	// PathDepth is the number of parts in a name. Defaults to 32.
	PathDepth int
	// NameBytes is the length of a name. Defaults to 512 bytes, with the
	// top-level directory of an archive.
	NameBytes int
	// IndexBytes is the size of a Helm repository's index. Defaults to 32 MiB, twice
	// the largest known.
	IndexBytes int64
	// Nesting is how deep archives may be inside each other (charts/*.tgz).
	// Defaults to 4; 1 is common, 2 is rare.
	Nesting int
}

// Defaults of [Limits].
const (
	DefaultArchiveBytes = 10 << 20 // bytes
	DefaultTotalBytes   = 32 << 20 // bytes
	DefaultFileBytes    = 5 << 20  // bytes
	DefaultEntries      = 10_000
	DefaultPathDepth    = 32
	DefaultNameBytes    = 512 // bytes
	DefaultNesting      = 4
	DefaultIndexBytes   = 32 << 20 // bytes
)

// WithDefaults returns the limits with no field left zero.
func (l Limits) WithDefaults() Limits {
	return Limits{
		ArchiveBytes: orDefault(l.ArchiveBytes, DefaultArchiveBytes),
		TotalBytes:   orDefault(l.TotalBytes, DefaultTotalBytes),
		FileBytes:    orDefault(l.FileBytes, DefaultFileBytes),
		Entries:      orDefault(l.Entries, DefaultEntries),
		PathDepth:    orDefault(l.PathDepth, DefaultPathDepth),
		NameBytes:    orDefault(l.NameBytes, DefaultNameBytes),
		Nesting:      orDefault(l.Nesting, DefaultNesting),
		IndexBytes:   orDefault(l.IndexBytes, DefaultIndexBytes),
	}
}

func orDefault[T int | int64](value, fallback T) T {
	if value <= 0 {
		return fallback
	}
	return value
}
