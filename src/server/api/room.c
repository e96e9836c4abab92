typedef int vg_room_begins; /* goes with the first file of this room */
