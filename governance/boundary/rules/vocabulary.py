"""Word lists of the boundary. Keys are compared without case, separators, accents and trailing numbers."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _table(text: str) -> dict[str, str]:
    """Word to hint, from lines of `hint: words`."""
    lines = (line.split(":") for line in text.strip().splitlines())
    return {word: hint.strip() for hint, words in lines for word in words.split()}


# Forbidden when the whole key is this word (or its plural).
EXACT_KEYS = _words(
    """
    name fullname firstname lastname middlename givenname familyname surname maidenname nickname username
    initials nextofkin mobile gender sex ethnicity religion nationality street zip zipcode postcode
    postalcode latitude longitude geolocation gps text content message description summary details remark
    memo image photo picture attachment blob raw html body payload prompt medicalhistory treatment vital
    labresult icd icdcode diagnosiscode auth authentication cookie otp cvv cvc iban accountnumber
    cardnumber pan biometric policyholder subscriber subscriberid subscribernumber policynumber
    membernumber groupnumber insurer
    """
)

# Forbidden when a key ends in this word (or its plural), so `patient_email` and `clinical_notes` are as well.
LAST_WORDS = _words(
    """
    email mail emailaddress phone phonenumber telephone mobilenumber msisdn fax whatsapp address dob
    dateofbirth birthdate birthday birthyear placeofbirth ssn socialsecurity socialsecuritynumber
    nationalid nationalidentifier nin bvn passport passportnumber iqama civilid emiratesid nhsnumber
    aadhaar taxid driverlicense driverslicense licenseplate mrn medicalrecord medicalrecordnumber
    recordnumber diagnosis diagnoses prognosis anamnesis symptoms complaint findings allergy allergies
    medication prescription impression note comment narrative transcript freetext errormessage password
    passwd pwd passphrase passcode secret token apikey accesskey privatekey secretkey signingkey
    encryptionkey clientsecret credential authorization bearer requestbody responsebody messagebody
    requestpayload responsepayload medicare medicaid insuranceid insurancenumber healthcard
    """
)

# Counting words whose plural is a number: `prompt_tokens`.
UNCOUNTED_PLURALS = _words("tokens")

# `<owner>_name` is a person's name; `model_name`, `step_name` and the like are not.
PERSONAL_NAME_OWNERS = _words(
    """
    first last middle full given family maiden sur legal preferred nick birth patient person user customer
    client contact doctor physician clinician nurse surgeon guardian mother father parent child spouse
    partner employee member subscriber beneficiary holder cardholder insured applicant citizen resident
    recipient sender author reviewer approver requester caregiver relative kin
    """
)

# What a word anywhere in the key says about the value. `quantity` lowers suspicion of bare numbers.
HINT_WORDS = _table(
    """
    birth: birth dob birthdate birthday born
    insurance: insurance insurer insured medicare medicaid policyholder
    national: ssn nin bvn iqama passport citizen kra nid nhs
    phone: phone telephone mobile msisdn whatsapp fax tel
    secret: secret token password passwd pwd passphrase credential credentials auth authorization
    secret: bearer cookie
    person: patient guardian physician doctor nurse clinician surgeon beneficiary mother father spouse
    person: relative caregiver kin surname firstname lastname
    role: author reviewer requester approver contact customer sender recipient assignee by user person
    quantity: at ts time timestamp epoch ms seconds bytes size count amount total duration tokens units
    quantity: price cost offset sequence seq unix
    """
)
# The same for the last one to three words of the key, written together.
HINT_ENDINGS = _table(
    """
    age: age patientage ageyears ageinyears
    insurance: policynumber memberid membernumber subscriberid groupnumber
    national: nationalid nationalidnumber idnumber civilid emiratesid socialsecurity
    national: socialsecuritynumber taxid nationalnumber
    person: firstname lastname fullname givenname familyname middlename maidenname
    record: mrn medicalrecordnumber recordnumber chartnumber
    secret: apikey accesskey privatekey secretkey signingkey encryptionkey clientsecret
    """
)
# `age` is a person's unless it measures one of these: `max_age`, `cache_age`.
NOT_A_PERSONS_AGE = _words("max min cache message queue lease key oldest token session entry stale")

# `secret_ref` and `passport_hash` refer to the thing; they do not contain it.
ABOUT_ENDINGS = _words("ref hash sha digest count version uri arn type status code")

# Given names common in the regions served, without those that are also places, months, virtues or products.
GIVEN_NAMES = _words(
    """
    james john robert michael william david richard joseph thomas charles christopher daniel matthew
    anthony donald steven paul andrew joshua kenneth kevin brian george timothy ronald edward jason
    jeffrey ryan jacob gary nicholas eric jonathan stephen larry justin scott brandon benjamin samuel
    gregory alexander patrick dennis jerry tyler aaron jose nathan henry douglas zachary peter kyle noah
    ethan jeremy walter keith roger terry sean gerald carl harold dylan arthur lawrence bryan bruce
    gabriel albert alan juan wayne ralph roy eugene randy vincent russell louis philip bobby johnny
    bradley simon oliver liam lucas leon mary patricia jennifer linda elizabeth barbara susan jessica
    sarah karen lisa nancy betty margaret ashley kimberly emily donna michelle carol amanda dorothy
    melissa deborah stephanie rebecca sharon laura cynthia kathleen amy angela shirley anna brenda pamela
    emma nicole helen samantha katherine christine debra rachel carolyn janet catherine maria heather
    diane ruth julie olivia joyce kelly lauren christina joan evelyn judith megan andrea cheryl hannah
    jacqueline martha gloria teresa ann alice julia judy isabella marie jane mohammed muhammad mohamed
    mohammad ahmed ahmad ali hassan hussein hussain omar umar khalid khaled abdullah abdul abdulaziz
    abdulrahman ibrahim yusuf yousef youssef saeed salman faisal fahad hamad rashid rashed nasser mansour
    tariq tarek bilal hamza mustafa majed majid waleed walid zayed saud turki bader fatima fatma aisha
    ayesha mariam maryam khadija zainab zaynab noura nora huda layla leila salma sara hessa latifa moza
    amina aminah hafsa ruqayya rania dalal chukwuemeka chinedu emeka obinna ifeanyi chidi uche ngozi
    chioma amaka adaeze nneka oluwaseun olumide tunde babatunde adebayo ayodele folake yetunde temitope
    funmilayo musa sani aliyu abubakar wanjiku wambui njeri achieng akinyi atieno otieno ochieng kamau
    mwangi kipchoge njoroge kariuki wanjiru uwimana mukamana habimana niyonzima mugisha uwase ishimwe
    kwame kofi kwabena kwaku yaw akosua akua abena afia efua adwoa hans klaus jurgen wolfgang heinz dieter
    stefan andreas lukas jonas ursula monika petra sabine heike anke pierre jacques francois michel
    philippe nicolas laurent isabelle nathalie sylvie veronique camille giovanni giuseppe luca marco
    matteo francesco alessandro giulia chiara francesca carlos javier miguel alejandro antonio manuel
    francisco pedro luis carmen lucia elena piotr krzysztof andrzej katarzyna malgorzata agnieszka sven
    lars bjorn ingrid astrid johan erik raj rahul amit sanjay vijay priya anjali sunita deepa ananya محمد
    أحمد احمد علي عبدالله خالد فاطمة مريم عائشة نورة سارة يوسف إبراهيم ابراهيم عمر حسن حسين
    """
)

# The most common family names of the same regions, without those that are also words, places or products.
SURNAMES = _words(
    """
    smith johnson williams jones garcia davis rodriguez martinez hernandez lopez gonzalez anderson taylor
    moore jackson perez thompson harris sanchez clark ramirez lewis robinson allen wright torres nguyen
    flores adams nelson campbell mitchell carter roberts gomez phillips evans turner diaz edwards collins
    reyes stewart morris morales murphy gutierrez ortiz cooper peterson bailey reed howard ramos watson
    richardson chavez mendoza ruiz hughes alvarez castillo sanders patel myers jimenez powell jenkins
    perry sullivan doe novak kowalski nowak wisniewski wojcik muller mueller schmidt schneider fischer
    weber meyer becker schulz hoffmann schafer schaefer koch bauer richter schroder schroeder neumann
    schwarz zimmermann braun kruger krueger hofmann hartmann werner krause lehmann dubois durand leroy
    moreau lefebvre fournier girard bonnet dupont lambert fontaine rousseau rossi russo ferrari esposito
    bianchi romano ricci marino greco fernandez svensson johansson karlsson nilsson eriksson larsson
    olsson jensen nielsen hansen pedersen andersen christensen janssen peeters devries okafor okonkwo
    adeyemi adebayo okoye nwosu eze balogun ogunleye oyelaran mensah owusu boateng asante appiah osei
    agyeman amoah acheampong otieno odhiambo ochieng wanjiru kamau mwangi kariuki njoroge kimani mutua
    nkurunziza mugisha habimana niyonzima uwimana alharbi alghamdi alotaibi alqahtani alshammari
    almansoori almaktoum alnahyan alhashimi alsabah almutairi alenezi mansoori hashimi ghamdi otaibi
    qahtani shammari sharma singh kumar gupta verma reddy iyer mukherjee banerjee yusuf ibrahim hassan
    mohammed ahmed ali hussein abdullah
    """
)

# Words that follow a label in names of fields, events and checks: `PatientName-Mismatch`, `patient_name:required`.
TECHNICAL_WORDS = _words(
    """
    field fields check checks checked required optional missing mismatch matched matches match matcher
    matching changed change changes updated update updates created deleted format formats hash hashed
    sha256 digest ref refs reference type types typed string text value values key keys id ids code codes
    column columns input output label labels template templates rule rules policy mask masked masking
    redact redacted redaction removed removal absent present empty null none nil true false unknown
    invalid valid validator validated validation verified verification verify lookup search index sort
    order parser parse extractor extract classifier model service server space spaces length limit max min
    count counts error errors test tests sample case event events schema version status state list page
    form step screen prompt token tokens normalizer normalised normalized normalize linkage link dedupe
    duplicate conflict collision admin root system default encrypted anonymized pseudonym pseudonymized v1 v2 v3 v4
    """
)

# Endings that show that a written-out address is one.
TOP_DOMAINS = _words(
    """
    com org net edu gov int mil info biz io co app dev health care clinic hospital med online cloud
    example test me tv eu us uk de fr it es pl se no dk fi nl be at ch ie pt gr cz hu ro ae sa kw ng ke rw
    gh qa bh om eg ma za in pk cn jp kr au nz br mx ca
    """
)

# The first words of labels, of written-out addresses and of message segments. `detectors.labels` has the whole labels.
LABEL_WORDS = _words(
    """
    at dot bearer authorization mrn medical hospital chart record dob yob born birth birthdate birthday
    birthyear date fecha geb geburtsdatum age ssn social socialsecurity national nationalid passport iqama
    nin bvn nhs emirates civil tax aadhaar pesel nino steuer codice phone tel telephone mobile cell fax
    msisdn whatsapp policy policynumber insurance medicare medicaid health nachname vorname familienname
    apellido apellidos prenom cognome lastname firstname surname patientname fullname pt mr mrs ms dr prof
    herr frau sheikh token password passwd pwd passphrase secret api access client auth card pan visa
    mastercard amex begin end key memberid membernumber policyno policynumber passportno passportnumber
    emiratesid civilid taxid dateofbirth medicalrecord medicalrecordnumber hospitalno chartno recordnumber
    patientno patientnumber patientage ageyears phoneno phonenumber mobileno mobilenumber apikey accesskey
    clientsecret secretkey accesstoken authtoken bearertoken subscriberid insuranceid insuranceno healthcard
    medicareid yearofbirth telno faxno cardno cardnumber nationalidnumber steuerid codicefiscale
    """
)
