/* tests/sim/disk_sim_in.h - the simulated disk from the inside: the model (disk_sim.c) and the door to it
 * (disk_sim_door.c). */
#ifndef NOH_TESTS_SIM_DISK_SIM_IN_H
#define NOH_TESTS_SIM_DISK_SIM_IN_H

#include "tests/sim/disk_sim.h"

#define SECTOR 512
#define MAX_PATH 200

struct bytes { uint8_t *at; uint64_t len, room; };

struct inode {
	uint64_t      id;        /* in order of creation: hashes must not depend on addresses */
	struct bytes  seen, durable;
	bool          marked;
	struct inode *next, *copy;
};

struct name { char path[MAX_PATH]; struct inode *inode; };
struct names { struct name *at; size_t count, room; };

enum kind { A_WRITE, A_SIZE, A_NAME };
struct item {
	enum kind     kind;
	struct inode *inode;
	uint64_t      off, len;              /* A_SIZE: len                                       */
	uint8_t      *data;                  /* NULL: zeros                                       */
	char          from[MAX_PATH], to[MAX_PATH];
	const void   *owner;                 /* a submit under way: the caller's buffer, else NULL */
	struct disk_file *file;
	uint64_t      ticket, due;
	bool          fails;
	bool          unseen;                /* begun, and nobody knows how far it got: not in `seen`     */
	enum sim_fault how;
};

struct disk_sim {
	struct disk   door;                  /* first: the door is the disk */
	uint64_t      random, now;
	uint64_t      ops, cut_at, inodes;
	uint64_t      count[SIM_OPS], fail_at[SIM_OPS];
	enum sim_fault fail_how[SIM_OPS];
	uint64_t      space;
	unsigned      least, most, handles, flying;
	uint64_t      faults;
	bool          off, lie;
	struct inode *all;
	struct names  seen, durable;
	struct names  made;                  /* directories that somebody made: no inode, only paths */
	struct item  *pending;
	size_t        count_pending, room_pending;
	char          problem[MAX_PATH + 80];
};

struct disk_file {
	struct disk_sim *s;
	struct inode    *inode;
	unsigned         flags, flying;
	char             path[MAX_PATH];
};

extern const struct disk_ops disk_sim_ops_table;

uint64_t model_draw(uint64_t *state);
void model_resize(struct bytes *b, uint64_t len);
void model_put(struct bytes *b, const uint8_t *data, uint64_t len, uint64_t off);
void model_complain(struct disk_sim *s, const char *what, const char *path);
struct inode *model_look_up(const struct names *n, const char *path);
void model_name(struct names *n, const char *path, struct inode *inode);
void model_apply_name(struct names *n, const struct item *it);
bool model_in_directory(const char *path, const char *dir);
struct inode *model_new_inode(struct disk_sim *s);
struct item *model_append(struct disk_sim *s, enum kind kind, struct inode *inode);
struct item *model_append_write(struct disk_sim *s, struct inode *inode, const void *data,
				uint64_t len, uint64_t off);
void model_drop(struct disk_sim *s, size_t i);
void model_promote(struct disk_sim *s, size_t i);
void model_promote_last(struct disk_sim *s);
void model_apply_sectors(struct bytes *b, const struct item *it, uint64_t *random);

#endif
