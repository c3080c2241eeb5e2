/* net/codec.h - messages and answers of actors between JSON and bytes: what HTTP and RESP have in common.
 *
 * Owns     nothing but what a message takes: codec_free.   Threads  any.
 */
#ifndef NOH_NET_CODEC_H
#define NOH_NET_CODEC_H

#include "core/json.h"
#include "net/call.h"

#define CODEC_BODY_INSIDE 512
struct codec_message {
	uint32_t    kind;
	const void *body;
	uint32_t    len;
	void       *big;                           /* what mem_free must get; NULL: none                    */
	size_t      big_len;
	uint64_t    inside[CODEC_BODY_INSIDE / 8];
};

/* message: an object, checked. NOH_OK, or a code, and noh_why() has the sentence. Then codec_free. */
int  codec_message(noh_box *box, const noh_type *type, const char *name, noh_json message, size_t most, struct codec_message *m);
void codec_free(struct codec_message *m);

/* The kind of this name: in the type's table, or of the JSON message that is called so. NOH_EKIND: there is none. */
int  codec_kind(noh_box *box, const noh_type *type, const char *name);
bool codec_has(const noh_type *type, const char *name);        /* there is a JSON message of this name */

/* The answer as an object, under this name. */
void codec_put_bytes(noh_json_out *o, const char *name, const void *bytes, size_t len);     /* without its type's hook */
void codec_put_answer(noh_json_out *o, const char *name, const noh_type *type, uint32_t kind, const struct reply_part *part);

#endif
