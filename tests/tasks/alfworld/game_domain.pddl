; The rules of ALFWorld's rooms, written for Carnot's tests. Names are those that the problems in this folder use.
(define (domain alfred)
(:requirements :adl :typing)
(:types agent location receptacle object rtype otype)
(:predicates
  (atLocation ?a - agent ?l - location)
  (receptacleAtLocation ?r - receptacle ?l - location)
  (objectAtLocation ?o - object ?l - location)
  (inReceptacle ?o - object ?r - receptacle)
  (receptacleType ?r - receptacle ?t - rtype)
  (objectType ?o - object ?t - otype)
  (canContain ?rt - rtype ?ot - otype)
  (openable ?r - receptacle)
  (opened ?r - receptacle)
  (checked ?x)
  (holds ?a - agent ?o - object)
  (holdsAny ?a - agent)
  (pickupable ?o - object)
  (cleanable ?o - object)
  (heatable ?o - object)
  (coolable ?o - object)
  (toggleable ?o - object)
  (sliceable ?o - object)
  (isClean ?o - object)
  (isHot ?o - object)
  (isCool ?o - object)
  (isOn ?o - object)
  (isToggled ?o - object)
  (isSliced ?o - object))

; Without effect on the room.
(:action help :parameters (?a - agent) :precondition () :effect (and (checked ?a)))
(:action inventory :parameters (?a - agent) :precondition () :effect (and (checked ?a)))
(:action look :parameters (?a - agent ?l - location) :precondition (atLocation ?a ?l) :effect (and (checked ?l)))
(:action examineReceptacle
  :parameters (?a - agent ?r - receptacle)
  :precondition (exists (?l - location) (and (atLocation ?a ?l) (receptacleAtLocation ?r ?l)))
  :effect (and (checked ?r)))
(:action examineObject
  :parameters (?a - agent ?o - object)
  :precondition (holds ?a ?o)
  :effect (and (checked ?o)))

(:action GotoLocation
  :parameters (?a - agent ?lStart - location ?lEnd - location ?r - receptacle)
  :precondition (and (atLocation ?a ?lStart) (receptacleAtLocation ?r ?lEnd))
  :effect (and (not (atLocation ?a ?lStart)) (atLocation ?a ?lEnd)))
(:action OpenObject
  :parameters (?a - agent ?l - location ?r - receptacle)
  :precondition (and (openable ?r) (not (opened ?r)) (atLocation ?a ?l) (receptacleAtLocation ?r ?l))
  :effect (and (opened ?r) (checked ?r)))
(:action CloseObject
  :parameters (?a - agent ?l - location ?r - receptacle)
  :precondition (and (openable ?r) (opened ?r) (atLocation ?a ?l) (receptacleAtLocation ?r ?l))
  :effect (and (not (opened ?r))))

; One object in hand; no limit to what a receptacle takes.
(:action PickupObject
  :parameters (?a - agent ?l - location ?o - object ?r - receptacle)
  :precondition (and (pickupable ?o) (not (holdsAny ?a)) (atLocation ?a ?l) (receptacleAtLocation ?r ?l)
                     (inReceptacle ?o ?r) (or (opened ?r) (not (openable ?r))))
  :effect (and (holds ?a ?o) (holdsAny ?a) (not (inReceptacle ?o ?r)) (not (objectAtLocation ?o ?l))))
(:action PutObject
  :parameters (?a - agent ?l - location ?o - object ?r - receptacle ?ot - otype ?rt - rtype)
  :precondition (and (holds ?a ?o) (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (or (opened ?r) (not (openable ?r)))
                     (objectType ?o ?ot) (receptacleType ?r ?rt) (canContain ?rt ?ot))
  :effect (and (inReceptacle ?o ?r) (objectAtLocation ?o ?l) (not (holds ?a ?o)) (not (holdsAny ?a))))

; What a receptacle does works through its closed door.
(:action CleanObject
  :parameters (?a - agent ?l - location ?r - receptacle ?o - object)
  :precondition (and (cleanable ?o) (holds ?a ?o) (atLocation ?a ?l) (receptacleAtLocation ?r ?l)
                     (or (receptacleType ?r SinkType) (receptacleType ?r SinkBasinType)))
  :effect (and (isClean ?o)))
(:action HeatObject
  :parameters (?a - agent ?l - location ?r - receptacle ?o - object)
  :precondition (and (heatable ?o) (holds ?a ?o) (atLocation ?a ?l) (receptacleAtLocation ?r ?l)
                     (receptacleType ?r MicrowaveType))
  :effect (and (isHot ?o) (not (isCool ?o))))
(:action CoolObject
  :parameters (?a - agent ?l - location ?r - receptacle ?o - object)
  :precondition (and (coolable ?o) (holds ?a ?o) (atLocation ?a ?l) (receptacleAtLocation ?r ?l)
                     (receptacleType ?r FridgeType))
  :effect (and (isCool ?o) (not (isHot ?o))))
(:action ToggleObject
  :parameters (?a - agent ?l - location ?o - object ?r - receptacle)
  :precondition (and (toggleable ?o) (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (inReceptacle ?o ?r))
  :effect (and (isToggled ?o) (when (isOn ?o) (not (isOn ?o))) (when (not (isOn ?o)) (isOn ?o))))
(:action SliceObject
  :parameters (?a - agent ?l - location ?co - object ?ko - object)
  :precondition (and (sliceable ?co) (holds ?a ?ko) (atLocation ?a ?l) (objectAtLocation ?co ?l)
                     (or (objectType ?ko KnifeType) (objectType ?ko ButterKnifeType)))
  :effect (and (isSliced ?co)))
)
