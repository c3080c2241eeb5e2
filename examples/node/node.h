/* node.h - a node agent: actors that keep instances, images, volumes and a network as the control plane wants them.
 *
 *     node_supervisor ─┬─ control_plane_stream            reads what is desired, from a cursor
 *                      ├─ instance_supervisor ────── instance:...          one per instance
 *                      ├─ volume_supervisor ──────── volume_attachment:...
 *                      ├─ overlay_supervisor ─────── wireguard:wg0
 *                      ├─ image_cache_supervisor ─┬─ image_pull:...        one per digest
 *                      │                          └─ image_gc
 *                      └─ observability_supervisor ┬ log_tail
 *                                                  └ metrics_scrape
 *
 * The devices they drive are simulated (devices.c), and fail at random.
 */
#ifndef NODE_H
#define NODE_H

#include <noh.h>
#include <noh_reconcile.h>

#define NODE "node-1"
enum { NAME = 24, PEERS = 8 };

/* ── specs and what is seen ── */

struct instance_spec { char image[NAME]; uint64_t cpus; };
struct instance_seen { char image[NAME]; char runs[NAME]; uint64_t cpus; };      /* pulled; running it */
struct image_spec { char digest[NAME]; };
struct image_seen { uint64_t present; };
struct volume_spec { char disk[NAME]; };
struct volume_seen { uint64_t attached; };
struct wireguard_spec { uint64_t count, peers[PEERS]; };         /* and what is seen of it */

/* ── messages ── */

/* To a supervisor: this message for that child, which is made if need be. */
enum { SUPERVISOR_CHILD };
struct child_message {
	char     address[40];
	uint32_t kind, len;
	uint8_t  body[sizeof(uint64_t) + sizeof(struct wireguard_spec)];
};
#define CHILD_HEAD offsetof(struct child_message, body)

/* To image_gc: an instance uses an image now, or does not any more. */
enum { GC_USES, GC_FREES, GC_SWEEP, GC_KINDS };

/* To a device. What it cannot do it refuses, with a sentence. */
enum {
	PLANE_READ,                /* uint64_t cursor          -> struct plane_event []          */
	HOST_RUN,                  /* struct host_order        -> struct instance_seen           */
	HOST_LOOK,                 /* char id[]                -> struct instance_seen           */
	HOST_STOP,                 /* char id[]                -> struct instance_seen           */
	REGISTRY_PULL,             /* -, of the digest in its address; answered when it is here  */
	REGISTRY_PULLED,           /* its timer                                                  */
	REGISTRY_DELETE,
	DISK_ATTACH, DISK_DETACH,  /* char disk[]                                                */
	WIRE_ADD, WIRE_REMOVE,     /* uint64_t peer            -> struct wireguard_spec          */
	WIRE_LOOK,                 /* -                        -> struct wireguard_spec          */
	DEVICE_KINDS
};
struct host_order { char id[NAME]; struct instance_spec spec; };

/* What the control plane wants, in the order it wanted it. */
struct plane_event {
	uint64_t             seq;
	char                 supervisor[48];
	struct child_message message;
};
enum { PLANE_BATCH = 8 };

/* ── the parts ── */

noh_type instance_type(void), image_pull_type(void), volume_attachment_type(void), wireguard_type(void);
noh_type image_gc_type(void), stream_type(void);
int register_supervisors(noh_box *box);          /* and the two of observability */

/* devices.c: everything below may be called from any thread. */
void devices_begin(uint64_t seed, unsigned percent);     /* so many calls of a hundred fail */
int register_devices(noh_box *box);
void plane_publish(const struct plane_event *event);
bool flaky(void);                                /* does it fail this time? */

struct device_report {
	unsigned calls, failed, silent;
	unsigned runs, stops;                    /* of instances */
	unsigned pulls, double_pulls;            /* double: two at a time of one digest */
	unsigned peer_changes;
	unsigned reads;                          /* of the control plane */
};
struct device_report devices_report(void);
bool host_runs(const char *id, const char *image, uint64_t cpus);        /* just so? image NULL: not at all */
bool disk_attached(const char *disk);
bool registry_has(const char *digest);
struct wireguard_spec wire_peers(void);
void host_lose(const char *id);                  /* it dies, and tells nobody */

#endif
